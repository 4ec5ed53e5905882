"""The pieces of a NumPyro model that any algorithm wants: log density, starts, constraints."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpyro.handlers import seed
from numpyro.infer.util import compute_log_probs, constrain_fn, potential_energy

from levymc._checks import check_count, check_key
from levymc.run import fingerprint

from ._call import Call, computed
from ._enumerated import depending, summed_out
from ._minibatch import RowsGradient, minibatches_of
from ._rows import taking, taking_all
from ._sites import Sites, sites_of

RADIUS = 2.0  # of the starts, as in numpyro.infer.init_to_uniform
MOST_ROUNDS = 100  # of draws of starts, as many as NumPyro's
AT_ONCE = 1024  # positions that are constrained together
MOST_KEPT = 16  # pieces that later calls may share
_KEPT: dict[Any, "NumpyroModel"] = {}  # the latest last


def from_numpyro(model: Callable[..., Any], *args: Any, **kwargs: Any) -> "NumpyroModel":
    r"""The pieces of a NumPyro model that any algorithm of ours or of BlackJAX's wants.

    The same model with equal arguments gives the same object, so that programs are compiled once,
    as long as it computes the same: what else it reads, such as a variable of a notebook, is looked
    at in every call.

    Not valid when: what a model reads besides its arguments changes while its pieces are used; call
    again.

    Args:
        model: a NumPyro model.
        args, kwargs: of the model.

    Returns:
        `logdensity_fn(position)`, of a dictionary of unconstrained values by site, with the
        Jacobian and all constants; `initial_positions(key, num_chains)`; `constrain(positions)`,
        the model's own and its deterministic sites; `dims`, the names of their axes.  Where plates
        subsample, all of these are on all of the data, and `grad_estimator` and `minibatches` are
        what `levymc.sgfla` and `levymc.sample` take.

    Raises:
        TypeError: no function.
        ValueError: latent sites that are discrete without end, or of a Delta law; numpyro.param;
            nothing continuous to sample.
        ImportError: discrete sites without funsor, which sums them out.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc, numpyro
        >>> import numpyro.distributions as dist
        >>> def model(y):
        ...     scale = numpyro.sample("scale", dist.HalfNormal(2.0))
        ...     with numpyro.plate("data", len(y), subsample_size=10):
        ...         rows = numpyro.subsample(y, event_dim=0)
        ...         numpyro.sample("y", dist.Normal(0.0, scale), obs=rows)
        >>> pieces = levymc.interop.numpyro.from_numpyro(model, jnp.linspace(-3.0, 3.0, 100))
        >>> starts = pieces.initial_positions(jax.random.key(0), 4)
        >>> walk = levymc.levy_walk(pieces.logdensity_fn, 0.2)
        >>> run = levymc.sample(walk, jax.random.key(1), starts, 50, progress=False)
        >>> pieces.constrain(run.positions)["scale"].shape
        (4, 50)
        >>> sgld = levymc.sgld(pieces.grad_estimator, 1e-3)
        >>> run = levymc.sample(
        ...     sgld, jax.random.key(1), starts, 50, minibatches=pieces.minibatches, progress=False
        ... )
        >>> run.positions["scale"].shape
        (4, 50)
    """
    if not callable(model):
        raise TypeError(
            f"`model` must be a function with numpyro.sample in it, got {model!r:.100}. "
            "Give the model itself; its arguments come after the key."
        )
    pieces = _made(Call(model, args, kwargs))
    return _first_alike(pieces) if pieces._call.is_comparable else pieces


@dataclass(frozen=True, eq=False)
class NumpyroModel:
    """See `from_numpyro`; `sites` is what was found in the model."""

    _call: Call
    sites: Sites
    logdensity_fn: Callable[[dict[str, Any]], Array]
    _constrain_one: Callable[[dict[str, Any]], dict[str, Array]]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the latent sites, which are the keys of a position."""
        return tuple(self.sites.latent)

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Names of the axes of sites: plates, or numbers where there is none."""
        summed = self.sites.enumerated
        return {name: axes for name, axes in self.sites.dims.items() if name not in summed}

    def initial_positions(self, key: Any, num_chains: int) -> dict[str, Array]:
        """Starts along the first axis: uniform in (-2, 2), log φ and its gradient finite there.

        Raises: ValueError: where there are none.
        """
        count = check_count("num_chains", num_chains, "It is a number of starts, such as 4.")
        found: list[dict[str, Array]] = []
        for key_round in jax.random.split(check_key(key), MOST_ROUNDS):
            drawn = self._uniform(key_round, count)
            is_usable = np.asarray(_is_finite_at(self.logdensity_fn, drawn))
            found.append({name: leaf[is_usable] for name, leaf in drawn.items()})
            if sum(len(leaves[self.names[0]]) for leaves in found) >= count:
                return jax.tree.map(lambda *parts: jnp.concatenate(parts)[:count], *found)
        raise ValueError(
            "`model` must have a finite log density and gradient, got neither at "
            f"{MOST_ROUNDS * count} points with unconstrained values in (-2, 2)"
            f"{self._blamed(drawn)}. Look at the data and the priors, or start elsewhere."
        )

    def _uniform(self, key: Array, count: int) -> dict[str, Array]:
        keys = jax.random.split(key, len(self.names))
        return {
            name: jax.random.uniform(
                key_site, (count, *shape.shape), shape.dtype, minval=-RADIUS, maxval=RADIUS
            )
            for key_site, (name, shape) in zip(keys, self.sites.latent.items(), strict=True)
        }

    def _blamed(self, positions: dict[str, Array]) -> str:
        """The sites that are to blame, in words, as far as one can tell."""
        if self.sites.enumerated:
            return ""
        one = self._constrain_one({name: leaf[0] for name, leaf in positions.items()})
        model = taking_all(self._call.model)
        terms, _ = compute_log_probs(model, self._call.args, self._call.kwargs, one)
        found = {name: float(term) for name, term in terms.items() if not np.isfinite(term)}
        return f": for instance, the sites have log densities {found}" if found else ""

    def constrain(self, positions: dict[str, Any]) -> dict[str, np.ndarray]:
        """The model's own and deterministic sites; axes before those of one position stay first.

        Raises: ValueError: other sites than the model has.
        """
        if set(positions) != set(self.names):
            raise ValueError(
                f"`positions` must have the latent sites {list(self.names)}, got "
                f"{list(positions)}. `initial_positions` makes such positions."
            )
        own = {name: len(shape.shape) for name, shape in self.sites.latent.items()}
        leaves = {name: np.asarray(leaf) for name, leaf in positions.items()}
        first = self.names[0]
        leading = leaves[first].shape[: leaves[first].ndim - own[first]]
        flat = {
            name: leaf.reshape(-1, *leaf.shape[leaf.ndim - own[name] :])
            for name, leaf in leaves.items()
        }
        found = _at_all(self._constrain_one, flat)
        return {
            name: np.asarray(leaf).reshape((*leading, *leaf.shape[1:]))
            for name, leaf in found.items()
        }

    @cached_property
    def grad_estimator(self) -> RowsGradient:
        """Of (position, rows of the subsampled plates), for `levymc.sgfla` and `levymc.sgld`.

        Raises: ValueError: where no plate subsamples, or a latent site is inside one that does.
        """
        self._check_subsampled()
        # NumPy's arrays cannot be indexed by rows that a program draws.
        args, kwargs = jax.tree.map(
            lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf,
            (self._call.args, self._call.kwargs),
        )

        def logdensity_on(position: Any, rows: dict[str, Array]) -> Array:
            model = _prepared(taking(self._call.model, rows), self.sites)
            return -potential_energy(
                model, args, kwargs, position, enum=bool(self.sites.enumerated)
            )

        return RowsGradient(logdensity_on, tuple(self.sites.subsampled))

    @cached_property
    def minibatches(self) -> Any:
        """Rows of the subsampled plates, for `levymc.sample(..., minibatches=...)`.

        Of one plate they are drawn in the program, of several by the number of the step; as many
        as the model asks for.
        """
        self._check_subsampled()
        return minibatches_of(self.sites.subsampled)

    def _check_subsampled(self) -> None:
        if not self.sites.subsampled:
            raise ValueError(
                "`model` must have a plate that subsamples for a minibatch gradient, got none. "
                "Give its numpyro.plate a subsample_size, and take rows by numpyro.subsample."
            )
        if self.sites.local:
            raise ValueError(
                f"`model` must have no latent site inside a plate that subsamples, got "
                f"{list(self.sites.local)}: a step would know the values of its own rows alone. "
                "Integrate them out, or use the whole gradient of `logdensity_fn`."
            )


def _made(call: Call) -> NumpyroModel:
    sites = sites_of(call.model, call.args, call.kwargs)
    whole, enum = taking_all(call.model), bool(sites.enumerated)
    prepared = _prepared(whole, sites)

    def logdensity_fn(position: dict[str, Any]) -> Array:
        return -potential_energy(prepared, call.args, call.kwargs, position, enum=enum)

    # Discrete sites get some values here; what depends on them is left out.
    replayed = seed(whole, jax.random.key(0)) if enum else whole
    omitted = depending(whole, call.args, call.kwargs, sites) if enum else ()
    if omitted:
        warnings.warn(
            f"The deterministic sites {list(omitted)} depend on the discrete sites "
            f"{list(sites.enumerated)}, which are summed out, and are left out. Compute them by "
            "numpyro.infer.Predictive(model, posterior, infer_discrete=True, batch_ndims=2).",
            stacklevel=4,
        )

    def constrain_one(position: dict[str, Any]) -> dict[str, Array]:
        found = constrain_fn(replayed, call.args, call.kwargs, position, return_deterministic=True)
        return {name: jnp.asarray(leaf) for name, leaf in found.items() if name not in omitted}

    return NumpyroModel(call, sites, logdensity_fn, constrain_one)


def _first_alike(pieces: NumpyroModel) -> NumpyroModel:
    """The pieces that an earlier call of the same model has made, if they compute the same."""
    told = _told(pieces)
    if told is None:
        return pieces
    found = _KEPT.pop((pieces._call, told), pieces)
    _KEPT[pieces._call, told] = found  # as the latest
    for oldest in list(_KEPT)[:-MOST_KEPT]:
        _KEPT.pop(oldest, None)
    return found


def _told(pieces: NumpyroModel) -> tuple[str, ...] | None:
    """What tells pieces from others of the same call; None where that cannot be seen.

    A model may read what is none of its arguments, such as a variable of a notebook, which may have
    changed since the last call.
    """

    def all_of_it(position: dict[str, Any]) -> Any:
        return pieces.logdensity_fn(position), pieces._constrain_one(position)

    try:
        program = computed(all_of_it, pieces.sites.latent)
    except Exception:  # which whoever uses what cannot be traced will see
        return None
    if program is None:
        return None
    observed = pieces.sites.observed
    rest = pieces.sites._replace(observed={})
    return program, str(rest), str(list(observed)), fingerprint(observed.values())


def _prepared(model: Callable[..., Any], sites: Sites) -> Callable[..., Any]:
    return summed_out(model, sites.max_plate_nesting) if sites.enumerated else model


@partial(jax.jit, static_argnums=0)
def _is_finite_at(logdensity_fn: Callable[[Any], Array], positions: dict[str, Array]) -> Array:
    values, gradients = jax.vmap(jax.value_and_grad(logdensity_fn))(positions)
    axes = [
        jnp.all(jnp.isfinite(leaf.reshape(len(leaf), -1)), axis=1)
        for leaf in jax.tree.leaves(gradients)
    ]
    return jnp.isfinite(values) & jnp.all(jnp.stack(axes), axis=0)


@partial(jax.jit, static_argnums=0)
def _at_all(function: Callable[[Any], Any], positions: dict[str, Array]) -> dict[str, Array]:
    return jax.lax.map(function, positions, batch_size=AT_ONCE)
