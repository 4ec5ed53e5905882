"""What stands for data where NumPyro imputes others: coordinates that want a prior.

numpyro.sample("y", law, obs=y, obs_mask=mask) is two sites as large as the data: y_observed, which
counts where the mask is true, and the latent y_unobserved, which counts elsewhere.  Nothing depends
on the latter where there are data, and it has no prior there: a continuous one is flat, without an
integral, and a discrete one counts every value as 1.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

from numpyro import handlers
from numpyro.distributions import MaskedDistribution
from numpyro.primitives import _PYRO_STACK, Messenger

OBSERVED, UNOBSERVED = "_observed", "_unobserved"  # after the name, by numpyro.sample


class _Site(NamedTuple):
    """One that has just been stated, with the handler that is the nearest to it."""

    name: str
    law: Any
    handler: Any
    is_observed: bool


class _Imputing(Messenger):
    """Takes the mask from the prior of what stands for data.

    It integrates to one then, whatever the other sites are: their posterior and the evidence are as
    if it was not there.
    """

    _last: _Site | None = None

    def process_message(self, msg: Any) -> None:
        if msg["type"] != "sample":
            return
        site = _Site(msg["name"], msg["fn"], _PYRO_STACK[-1], msg["is_observed"])
        if self._last is not None and _are_pair(self._last, site):
            msg["fn"] = _unmasked(site.law, self._last.law)
        self._last = site

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._last = None  # it may hold numbers that only a transformation knows
        super().__exit__(exc_type, exc_value, traceback)


def imputing(model: Callable[..., Any]) -> Callable[..., Any]:
    """The model with a prior for all coordinates of what NumPyro imputes."""
    return _Imputing(model)


def _are_pair(first: _Site, second: _Site) -> bool:
    """Whether one statement with an obs_mask makes both, which names alone do not tell."""
    name = first.name.removesuffix(OBSERVED)
    return (
        (first.name, second.name) == (name + OBSERVED, name + UNOBSERVED)
        and (first.is_observed, second.is_observed) == (True, False)
        and all(isinstance(site.handler, handlers.mask) for site in (first, second))
        and first.handler is not second.handler
    )


def _unmasked(law: Any, twin: Any) -> Any:
    """The law without the innermost mask that its twin does not share.

    One that the user gave to the law is further in, and those of other handlers are further out.
    """
    mine, twins = layers(law), layers(twin)
    if len(mine) != len(twins) or mine[-1] is not twins[-1]:
        return law
    own = [
        place
        for place, pair in enumerate(zip(mine, twins, strict=True))
        if pair[0] is not pair[1] and all(isinstance(one, MaskedDistribution) for one in pair)
    ]
    if not own:
        return law
    found = mine[own[-1] + 1]
    for layer in reversed(mine[: own[-1]]):
        is_mask = isinstance(layer, MaskedDistribution)
        found = found.mask(layer._mask) if is_mask else found.expand(layer.batch_shape)
    return found


def layers(law: Any) -> list[Any]:
    """A law and what it is made of, from the outside, where masks and plates are."""
    found = [law]
    while hasattr(found[-1], "base_dist"):
        found.append(found[-1].base_dist)
    return found
