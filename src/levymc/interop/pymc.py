r"""PyMC models: sampled by `levymc.auto` in one call, or in pieces for any algorithm.

.. code-block:: python

    fit = levymc.interop.pymc.sample(model, jax.random.key(0))
    arviz.summary(fit.to_arviz())
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc._checks import check_count, check_key
from levymc.adapt import auto

from ._evidence import Loose, with_meaning
from ._model_result import ModelResult, model_result
from ._pymc_graph import (
    Data,
    draws_at_random,
    jaxified,
    pymc_with_jax,
    without_truncation_warnings,
)

_NUM_STARTS = 16  # as many points as the search of `levymc.auto` relaxes at once
_MOST_TRIES = 20
_AT_ONCE = 1024  # positions that are constrained together


def sample(
    model: Any,
    key: Any,
    *,
    budget: int = 200_000,
    progress: bool = True,
    store: str | Path | None = None,
) -> ModelResult:
    r"""Sample a PyMC model by `levymc.auto`: modes found and weighed, nothing to tune.

    .. math:: φ(u) = p(\text{data}, x(u)) \, |\det \partial x / \partial u|

    Targets: the posterior, exactly, given enough steps and the modes found; `log_evidence` is the
    log marginal likelihood.  It is NaN, and the report says so, where a prior does not integrate to
    one: pm.Flat and pm.HalfFlat; pm.ICAR, pm.CAR and the LKJ laws, whose constants are not right
    in PyMC; and angles such as pm.VonMises, which PyMC unrolls to a line.
    Not valid when: as `levymc.auto` says; read `warnings` first.

    With a pm.Potential the evidence is log ∫ of the product with it.  That is the log marginal
    likelihood if the potential is a likelihood; if it is part of a prior, the prior has another
    integral than 1, and the evidence does not compare with that of other models.  The report notes
    it, and also where `total_size` multiplies a likelihood.  The transform `ordered` makes the
    evidence lower by log k! for k exchangeable variables, and a pm.CustomDist is what it is.

    The model is compiled with the data that it has now, in 64 bits unless PyTensor's floatX is
    float32, whatever JAX is set to.  JAX's settings are as before afterwards.

    Args:
        model: a pm.Model, all of whose free variables are continuous.
        key: a JAX random key.
        budget: evaluations of the log density, with or without its gradient, over all chains.
        progress: show a bar, in a terminal.
        store: a folder.  The same call, made again, goes on where the last one was killed.

    Returns:
        `posterior`: free and deterministic variables by name, with axes (chain, draw, …);
        `result`, the `levymc.adapt.AutoResult`; its `report`, `warnings`, `log_evidence` and, with
        the model's variables, `modes`; `to_arviz()`.

    Raises:
        ImportError: without PyMC.
        TypeError, ValueError: what `from_pymc` and `levymc.auto` refuse.

    Examples:
        >>> import jax, numpy as np, pymc as pm, levymc
        >>> with pm.Model(coords={"arm": ["left", "right"]}) as model:
        ...     x = pm.Normal("x", 0.0, 3.0, dims="arm")
        ...     y = pm.Normal("y", x**2, 1.0, observed=np.array([9.0, 4.0]))
        >>> fit = levymc.interop.pymc.sample(
        ...     model, jax.random.key(0), budget=20_000, progress=False
        ... )
        >>> fit.modes.num_modes, fit.to_arviz().posterior["x"].dims
        (4, ('chain', 'draw', 'arm'))

    Departures: not in the paper.
    """
    key_starts, key_auto = jax.random.split(check_key(key))
    pieces = from_pymc(model)
    with pieces.precision():
        starts = pieces.initial_positions(key_starts, _NUM_STARTS)
        result = auto(
            pieces.logdensity_fn, key_auto, starts, budget=budget, progress=progress, store=store
        )
        known = with_meaning(result, _loose(pymc_with_jax(), model))
        return model_result(known, pieces.constrain, **_described(model))


def from_pymc(model: Any) -> "PymcModel":
    """The pieces of a PyMC model that any algorithm of ours or of BlackJAX's wants.

    `logdensity_fn` computes in JAX's precision: `with pieces.precision():` around all uses of the
    pieces allows as many bits as PyMC's model has.

    Args:
        model: a pm.Model, all of whose free variables are continuous.  Its data are kept: after
            pm.set_data the pieces refuse to work, but for functions that are compiled by then.

    Returns:
        `logdensity_fn(position)`, of a dictionary of unconstrained variables under PyMC's names,
        such as ``sigma_log__``, with the Jacobian; `initial_positions(key, num_chains)`;
        `constrain(positions)`, the model's free and deterministic variables.

    Raises:
        ImportError: without PyMC.
        TypeError: no pm.Model, or discrete variables.
        ValueError: no free variables, or data that are drawn anew each time, by pm.Minibatch.
        NotImplementedError: an operation that JAX does not have.

    Examples:
        >>> import jax, numpy as np, pymc as pm, levymc
        >>> with pm.Model() as model:
        ...     sigma = pm.HalfNormal("sigma", 2.0)
        ...     y = pm.Normal("y", 0.0, sigma, observed=np.array([0.4, -1.3, 0.6]))
        >>> pieces = levymc.interop.pymc.from_pymc(model)
        >>> with pieces.precision():
        ...     walk = levymc.levy_walk(pieces.logdensity_fn, 1.0)
        ...     starts = pieces.initial_positions(jax.random.key(0), 4)
        ...     run = levymc.sample(walk, jax.random.key(1), starts, 100, progress=False)
        ...     sigma = pieces.constrain(run.positions)["sigma"]
        >>> list(run.positions), sigma.shape, bool((sigma > 0).all())
        (['sigma_log__'], (4, 100), True)
    """
    pymc = pymc_with_jax()
    _check_model(pymc, model)
    graphs = {"logdensity": [model.logp()], "variables": _reported(pymc, model)}
    _check_not_random([*graphs["logdensity"], *graphs["variables"]])
    pieces = PymcModel(model, graphs)
    with pieces.precision():
        pieces.compiled("logdensity")  # what JAX cannot do is refused now
    return pieces


class PymcModel:
    """See `from_pymc`."""

    def __init__(self, model: Any, graphs: dict[str, list[Any]]) -> None:
        self.model, self._graphs = model, graphs
        self._data = Data([output for outputs in graphs.values() for output in outputs])
        self._ranks = {var.name: var.type.ndim for var in model.value_vars}
        self._functions: dict[tuple[str, bool], Callable[..., Any]] = {}

    def precision(self) -> AbstractContextManager[Any]:
        """A context in which JAX has 64 bits if the model has; the caller's own otherwise."""
        has_64_bits = any(var.type.dtype == "float64" for var in self.model.value_vars)
        return jax.enable_x64(True) if has_64_bits else nullcontext()

    def logdensity_fn(self, position: dict[str, Array]) -> Array:
        """log φ of the unconstrained variables, the Jacobian included."""
        function, values = self.compiled("logdensity"), self._in_order(position)
        with without_truncation_warnings():
            return jnp.asarray(function(*values)[0], jnp.result_type(*values))

    def initial_positions(self, key: Any, num_chains: int) -> dict[str, Array]:
        """Where PyMC would start, or `initval` says, jittered; the chains along the first axis."""
        key = check_key(key)
        num_chains = check_count("num_chains", num_chains, "Give one or more.")
        self._data.check_unchanged()
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
        starts = Starts(self.model, jax.jit(self.logdensity_fn))
        points = [starts.one(rng) for _ in range(num_chains)]
        return {name: jnp.stack([point[name] for point in points]) for name in self._ranks}

    def constrain(self, positions: dict[str, Any]) -> dict[str, np.ndarray]:
        """Free and deterministic variables of the model; axes before those of one stay first."""
        values = [np.asarray(leaf) for leaf in self._in_order(positions)]
        leading = values[0].shape[: values[0].ndim - next(iter(self._ranks.values()))]
        flat = [value.reshape(-1, *value.shape[len(leading) :]) for value in values]
        with without_truncation_warnings():
            found = _in_batches(self.compiled("variables"), flat)
        names = [output.name for output in self._graphs["variables"]]
        return {
            name: output.reshape((*leading, *output.shape[1:]))
            for name, output in zip(names, found, strict=True)
        }

    def compiled(self, name: str) -> Callable[..., Any]:
        """One of the graphs, in JAX's precision of the moment."""
        self._data.check_unchanged()
        place = name, bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]
        if place not in self._functions:
            with jax.ensure_compile_time_eval():  # constants of all traces, not of this one
                self._functions[place] = jaxified(
                    self.model.value_vars,
                    self._graphs[name],
                    self._data,
                    check_bounds=self.model.check_bounds,
                )
        return self._functions[place]

    def _in_order(self, position: dict[str, Any]) -> list[Any]:
        if set(position) != set(self._ranks):
            raise ValueError(
                f"`position` must have the model's unconstrained variables {list(self._ranks)}, "
                f"got {list(position)}. `initial_positions` makes such positions."
            )
        return [position[name] for name in self._ranks]


def _in_batches(function: Callable[..., Any], values: list[np.ndarray]) -> list[np.ndarray]:
    """A function of one position, at positions along the first axis."""

    def at_all(positions: list[Array]) -> list[Array]:
        return jax.lax.map(lambda one: function(*one), positions, batch_size=_AT_ONCE)

    return [np.asarray(output) for output in jax.jit(at_all)(values)]


class Starts:
    """Finite starts of a model, one after the other."""

    def __init__(self, model: Any, logdensity_fn: Callable[[Any], Array]) -> None:
        from pymc.initial_point import make_initial_point_fn

        self.model, self.logdensity_fn = model, logdensity_fn
        self.point = make_initial_point_fn(model=model, jitter_rvs=set(model.free_RVs))

    def one(self, rng: np.random.Generator) -> dict[str, Array]:
        for _ in range(_MOST_TRIES):
            drawn = self.point(int(rng.integers(2**30)))
            point = {
                var.name: jnp.asarray(np.asarray(drawn[var.name], var.type.dtype))
                for var in self.model.value_vars
            }
            if np.isfinite(self.logdensity_fn(point)):
                return point
        raise ValueError(
            f"`model` must have a finite log density where it starts, got none in {_MOST_TRIES} "
            f"tries, the last of them {drawn!s:.200}. Give its variables an `initval`; "
            "model.debug() shows which of them is at fault."
        )


def _reported(pymc: Any, model: Any) -> list[Any]:
    """What PyMC itself would keep of a draw: free and deterministic variables."""
    return pymc.util.get_default_varnames(model.unobserved_value_vars, include_transformed=False)


def _described(model: Any) -> dict[str, Any]:
    """Names of axes, labels along them, and the data, for ArviZ."""
    from pymc.backends import arviz

    coords, dims = arviz.coords_and_dims_for_inferencedata(model)
    observed, constant = arviz.find_observations(model), arviz.find_constants(model)
    return {
        "coords": coords,
        "dims": dims,
        "data": {"observed_data": observed, "constant_data": constant},
    }


def _loose(pymc: Any, model: Any) -> Loose:
    """What in a model is no normalised law."""
    from pymc.distributions import multivariate
    from pymc.distributions.transforms import CircularTransform
    from pymc.variational.minibatch_rv import MinibatchRandomVariable

    def named(variables: list[Any], *kinds: type) -> tuple[str, ...]:
        laws = {var.name: _laws(var, model) for var in variables}
        return tuple(
            name for name, found in laws.items() if any(isinstance(f, kinds) for f in found)
        )

    flat = [type(law.rv_op) for law in (pymc.Flat, pymc.HalfFlat)]
    # On the line that PyMC unrolls a circle to, a law repeats itself without end.
    unrolled = [
        var.name
        for var in model.free_RVs
        if isinstance(model.rvs_to_transforms[var], CircularTransform)
    ]
    # PyMC leaves out the constant of these, and of LKJ laws takes its inverse.
    kinds = [type(law.rv_op) for law in (pymc.ICAR, pymc.CAR)]
    kinds += [multivariate.LKJCorrRV, multivariate._LKJCholeskyCovRV]
    improper = (*named(model.free_RVs, *flat), *unrolled)
    return Loose(
        improper=improper,
        unnormalised=tuple(n for n in named(model.free_RVs, *kinds) if n not in improper),
        factors=tuple(var.name for var in model.potentials),
        scaled=named(model.observed_RVs, MinibatchRandomVariable),
    )


def _laws(variable: Any, model: Any) -> list[Any]:
    """The operations that draw a variable, as far as no other one of the model is in between."""
    from pytensor.graph.traversal import ancestors

    others = set(model.basic_RVs) - {variable}
    made = [
        var.owner.op for var in ancestors([variable], others) if var.owner and var not in others
    ]
    # Of a truncated law and one of pymc.dims it is inside another operation.
    inside = [getattr(op, name, op) for op in made for name in ("base_rv_op", "core_op")]
    return [*made, *inside]


def _check_model(pymc: Any, model: Any) -> None:
    if not isinstance(model, pymc.Model):
        raise TypeError(
            f"`model` must be a pm.Model, got {type(model).__name__}. "
            "Give what `with pm.Model() as model:` names."
        )
    discrete = [var.name for var in model.discrete_value_vars]
    if discrete:
        raise TypeError(
            f"`model` must have continuous free variables only, got discrete ones: "
            f"{', '.join(discrete)}. They have no gradient: sum them out, for instance by "
            "pm.Mixture or pymc_extras.marginalize."
        )
    if not model.value_vars:
        raise ValueError(
            "`model` must have free variables, got none. There is nothing to sample where all is "
            "observed."
        )


def _check_not_random(outputs: list[Any]) -> None:
    if draws_at_random(outputs):
        raise ValueError(
            "`model` must have a log density that is the same each time, got one that makes random "
            "draws, as pm.Minibatch and pm.Simulator do. Give it all of the data; for minibatches "
            "write the log density in JAX, and see levymc.sgfla."
        )
