"""One call for a NumPyro model: `levymc.auto` on its unconstrained density."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from levymc._checks import check_key
from levymc.adapt import auto

from .._evidence import with_meaning
from .._model_result import ModelResult, model_result
from ._model import from_numpyro

NUM_STARTS = 16  # as many points as the search of `levymc.auto` relaxes at once


def sample(
    model: Callable[..., Any],
    key: Any,
    *args: Any,
    budget: int = 200_000,
    progress: bool = True,
    store: str | Path | None = None,
    **kwargs: Any,
) -> ModelResult:
    r"""Sample a NumPyro model by `levymc.auto`: modes found and weighed, nothing to tune.

    .. math:: φ(u) = p(\text{data}, x(u)) \, |\det \partial x / \partial u|

    Targets: the posterior, exactly, given enough steps and the modes found; `log_evidence` is the
    log marginal likelihood.  It is NaN, and the report says so, where a prior does not integrate to
    one: where it is improper, or inside `numpyro.handlers.scale`.
    Not valid when: as `levymc.auto` says; read `warnings` first.

    With a `numpyro.factor` the evidence is log ∫ of the product with it.  That is the log marginal
    likelihood if the factor is a likelihood; if it is part of a prior, the prior has another
    integral than 1, and the evidence does not compare with that of other models.  The report notes
    it, and also where `numpyro.handlers.scale` multiplies a likelihood.

    Discrete sites with finitely many values are summed out by funsor, and are not among the draws:
    `numpyro.infer.Predictive(model, fit.posterior, infer_discrete=True, batch_ndims=2)` draws them.
    Plates that subsample take all of their data here; `from_numpyro` makes minibatches of them.
    Values that NumPyro imputes by `obs_mask` are drawn; where there are data, ``y_unobserved`` are
    replicates of these.

    Args:
        model: a NumPyro model.
        key: a JAX random key.
        args, kwargs: of the model.  One that is called as an option here is bound by
            functools.partial.
        budget: evaluations of the log density, with or without its gradient, over all chains.
        progress: show a bar, in a terminal.
        store: a folder.  The same call, made again, goes on where the last one was killed.

    Returns:
        `posterior`: constrained and deterministic sites by name, with axes (chain, draw, …);
        `result`, the `levymc.adapt.AutoResult`; its `report`, `warnings`, `log_evidence` and, with
        the model's sites, `modes`; `to_arviz()`, with plates as dims.

    Raises:
        ImportError: discrete sites without funsor.
        TypeError, ValueError: what `from_numpyro` and `levymc.auto` refuse.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc, numpyro
        >>> import numpyro.distributions as dist
        >>> def model(y):
        ...     with numpyro.plate("arm", 2):
        ...         x = numpyro.sample("x", dist.Normal(0.0, 3.0))
        ...         numpyro.sample("y", dist.Normal(x**2, 1.0), obs=y)
        >>> fit = levymc.interop.numpyro.sample(
        ...     model, jax.random.key(0), jnp.array([9.0, 4.0]), budget=20_000, progress=False
        ... )
        >>> fit.modes.num_modes, fit.dims["x"]
        (4, ('arm',))

    Departures: not in the paper.
    """
    key_starts, key_auto = jax.random.split(check_key(key))
    pieces = from_numpyro(model, *args, **kwargs)
    result = auto(
        pieces.logdensity_fn,
        key_auto,
        pieces.initial_positions(key_starts, NUM_STARTS),
        budget=budget,
        progress=progress,
        store=store,
    )
    known = with_meaning(result, pieces.sites.loose)
    observed = {"observed_data": pieces.sites.observed}
    return model_result(known, pieces.constrain, dims=pieces.dims, data=observed)
