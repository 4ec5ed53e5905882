"""What there is in a NumPyro model, and what of it cannot be sampled, with the reason."""

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import numpyro.distributions as dist
from numpyro.distributions.transforms import biject_to
from numpyro.handlers import seed, substitute, trace
from numpyro.infer.initialization import init_to_uniform

from levymc._checks import is_traced

from .._evidence import Loose
from ._imputed import layers
from ._rows import taking_all

TAKEN = ("chain", "draw")  # axes of all draws
Trace = dict[str, dict[str, Any]]


class Sites(NamedTuple):
    """Of a model on all of its data.

    latent: shapes and dtypes of the continuous latent sites, unconstrained.
    enumerated: discrete sites that are summed out, likewise.
    loose: sites that are no normalised laws.
    subsampled: sizes of the plates that subsample, and of their minibatches.
    local: latent sites inside such plates.
    observed: data.  dims: names of the axes of all of these, and of deterministic sites.
    max_plate_nesting: how many axes plates take.
    """

    latent: dict[str, jax.ShapeDtypeStruct]
    enumerated: dict[str, jax.ShapeDtypeStruct]
    loose: Loose
    subsampled: dict[str, tuple[int, int]]
    local: tuple[str, ...]
    observed: dict[str, np.ndarray]
    dims: dict[str, tuple[str, ...]]
    max_plate_nesting: int


def sites_of(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sites:
    """Look at a model, and refuse what cannot be sampled."""
    subsampled = {
        name: (int(site["args"][0]), int(site["args"][1]))
        for name, site in _trace(model, args, kwargs).items()
        if site["type"] == "plate" and site["args"][1] not in (None, site["args"][0])
    }
    found = _trace(taking_all(model), args, kwargs)
    latent = {name: site for name, site in found.items() if _is_latent(site)}
    _check(found, latent)
    discrete = [name for name, site in latent.items() if site["fn"].support.is_discrete]
    if discrete:
        _check_funsor(discrete)
    continuous = {name: site for name, site in latent.items() if name not in discrete}
    observed = {
        name: np.asarray(site["value"])
        for name, site in found.items()
        if site["type"] == "sample" and site["is_observed"] and np.size(site["value"])
    }
    return Sites(
        {name: _unconstrained(site) for name, site in continuous.items()},
        {name: _shape(latent[name]["value"]) for name in discrete},
        _loose(found),
        subsampled,
        tuple(name for name, site in latent.items() if _plates(site) & set(subsampled)),
        observed,
        _dims(found),
        max((-frame.dim for site in found.values() for frame in _frames(site)), default=0),
    )


def _trace(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Trace:
    """All sites, with some values."""
    started = substitute(seed(model, jax.random.key(0)), substitute_fn=init_to_uniform)
    return trace(started).get_trace(*args, **kwargs)


def _is_latent(site: dict[str, Any]) -> bool:
    return site["type"] == "sample" and not site["is_observed"]


def _frames(site: dict[str, Any]) -> list[Any]:
    return site.get("cond_indep_stack") or []


def _plates(site: dict[str, Any]) -> set[str]:
    return {frame.name for frame in _frames(site)}


def _unconstrained(site: dict[str, Any]) -> jax.ShapeDtypeStruct:
    return _shape(biject_to(site["fn"].support).inv(site["value"]))


def _shape(value: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(np.shape(value), value.dtype)


# What does not integrate to one.


def _loose(found: Trace) -> Loose:
    sites = {name: site for name, site in found.items() if site["type"] == "sample"}
    latent = [name for name, site in sites.items() if _is_latent(site)]
    factors = [name for name in sites if isinstance(layers(sites[name]["fn"])[-1], dist.Unit)]
    improper = [name for name in latent if _is_improper(sites[name]["fn"])]
    scaled = [name for name, site in sites.items() if _is_scaled(site)]
    # A discrete prior that is masked has a sum, of 1 for each value.
    other = [name for name in latent if name in scaled or _is_masked(sites[name]["fn"])]
    return Loose(
        tuple(improper),
        tuple(name for name in other if name not in improper),
        tuple(factors),
        tuple(name for name in scaled if name not in [*latent, *factors]),
    )


def _is_improper(law: Any) -> bool:
    """Whether a prior, or the one under it, has no integral: it is flat, or it is masked."""
    is_flat = isinstance(layers(law)[-1], dist.ImproperUniform)
    return is_flat or (_is_masked(law) and not law.support.is_discrete)


def _is_masked(law: Any) -> bool:
    masks = [one._mask for one in layers(law) if isinstance(one, dist.MaskedDistribution)]
    return not all(np.all(mask) for mask in masks)


def _is_scaled(site: dict[str, Any]) -> bool:
    """Whether a log density is multiplied, by a number that is known, or is not."""
    scale = site["scale"]
    return scale is not None and (is_traced(scale) or not np.all(np.asarray(scale) == 1))


# What is refused.


def _check(found: Trace, latent: Trace) -> None:
    for name, site in found.items():
        if site["type"] == "param":
            raise ValueError(
                f"`model` must have a prior for all that is unknown, got the numpyro.param {name!r}"
                ", which has none. Make it a numpyro.sample; or fix it: numpyro.handlers.block("
                f"numpyro.handlers.substitute(model, data=values), hide=[{name!r}])."
            )
    for name, site in latent.items():
        _check_site(name, site)
    if all(site["fn"].support.is_discrete for site in latent.values()):
        raise ValueError(
            f"`model` must have a continuous latent site, got {list(latent) or 'none'}. "
            "There is nothing that a sampler of continuous numbers could move."
        )


def _check_site(name: str, site: dict[str, Any]) -> None:
    law = type(site["fn"]).__name__
    if isinstance(layers(site["fn"])[-1], dist.Delta):
        raise ValueError(
            f"`model` must have a density, got the latent site {name!r} of a Delta law, which has "
            "none. Name a value by numpyro.deterministic."
        )
    if not site["fn"].support.is_discrete:
        return
    if not site["fn"].has_enumerate_support:
        raise ValueError(
            f"`model` must have finitely many discrete values, got the latent site {name!r} of a "
            f"{law} law: it can be neither moved along a gradient nor summed out. Sum or integrate "
            "it out by hand (dist.NegativeBinomial2 for a Poisson of Gamma rate), observe it, or "
            "sample it by numpyro.infer.CustomGibbs in a numpyro.infer.Gibbs whose other block is "
            "levymc.interop.numpyro.Kernel."
        )
    if site["infer"].get("enumerate", "parallel") != "parallel":
        raise ValueError(
            f"`model` must sum out its discrete sites in parallel, got {name!r} marked as "
            f"{site['infer']['enumerate']!r}. Mark it by infer={{'enumerate': 'parallel'}}."
        )


def _check_funsor(discrete: list[str]) -> None:
    if importlib.util.find_spec("funsor") is None:
        raise ImportError(
            f"Summing out the discrete sites {discrete} needs funsor: pip install funsor."
        )


# Names of axes.


def _dims(found: Trace) -> dict[str, tuple[str, ...]]:
    named = {
        name: site for name, site in found.items() if site["type"] in ("sample", "deterministic")
    }
    axes = {name: _axes(name, site) for name, site in named.items()}
    sizes: dict[str, set[int]] = {}
    for name, site in named.items():
        for axis, size in zip(axes[name], np.shape(site["value"]), strict=True):
            sizes.setdefault(axis, set()).add(size)
    # xarray has one size for a name, fills shorter ones with NaN, and drops a variable called so.
    unclear = {*TAKEN, *named, *(axis for axis, found in sizes.items() if len(found) > 1)}
    return {
        name: tuple(
            f"{name}_dim_{place}" if axis in unclear else axis for place, axis in enumerate(own)
        )
        for name, own in axes.items()
    }


def _axes(name: str, site: dict[str, Any]) -> tuple[str, ...]:
    """Plates, where they are; the event's by infer={"event_dims": …}, as in ArviZ; or numbers."""
    shape = np.shape(site["value"])
    axes = [f"{name}_dim_{place}" for place in range(len(shape))]
    frames = _frames(site)
    depth = max((-frame.dim for frame in frames), default=0)
    if site["type"] == "sample":
        depth = len(shape) - site["fn"].event_dim
    for frame in frames:
        place = depth + frame.dim
        if 0 <= place < len(shape) and shape[place] == frame.size:
            axes[place] = f"{frame.name}_plate" if frame.name in TAKEN else frame.name
    given = list(site.get("infer", {}).get("event_dims", ()))
    if given and len(given) <= len(shape) - depth:
        axes[len(shape) - len(given) :] = given
    return tuple(axes)
