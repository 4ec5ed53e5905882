"""levymc's algorithms in numpyro.infer.MCMC, and in its Gibbs samplers."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array
from numpyro.distributions.transforms import biject_to
from numpyro.infer import init_to_uniform
from numpyro.infer.gibbs import GIBBS_SITES_KWARG
from numpyro.infer.mcmc import MCMCKernel
from numpyro.infer.util import initialize_model, transform_fn
from numpyro.util import is_prng_key

from levymc._checks import check_function
from levymc.algorithms import Algorithm, SamplingAlgorithm, as_algorithm

from ._rows import taking_all


class KernelState(NamedTuple):
    """Of a chain; of many, with an axis first.

    z: unconstrained values by site.  inner: the state of the algorithm.
    accept_prob, diverging, step_size: of the last step; NaN, and never, where the algorithm does
        not tell.
    num_steps: made so far.  mean_accept_prob: over them.
    """

    z: Any
    inner: Any
    accept_prob: Array
    diverging: Array
    step_size: Array
    num_steps: Array
    mean_accept_prob: Array
    rng_key: Array


class Kernel(MCMCKernel):
    r"""Any algorithm of levymc, or of BlackJAX's shape, as a kernel for `numpyro.infer.MCMC`.

    Targets: what the algorithm does; `mafla`, `levy_walk` and `jumping` around them the posterior
    exactly.  Not valid when: the step size of an unadjusted algorithm decreases: NumPyro weighs all
    draws alike, where `levymc.sample` weighs them by their steps.

    Nothing is adapted: the warm-up is a burn-in.  Chains may be parallel, sequential or vectorized.
    In `numpyro.infer.Gibbs` it serves as a block, where the supports of its sites do not depend on
    other sites.  Plates that subsample take all of their data.

    Args:
        model: a NumPyro model.
        algorithm: a function that makes the algorithm of a log density, called with one.
        init_strategy: where chains start, one of NumPyro's.

    Raises:
        TypeError: no functions; an algorithm that takes minibatches.

    Examples:
        >>> import jax, levymc, numpyro
        >>> import numpyro.distributions as dist
        >>> def model():
        ...     x = numpyro.sample("x", dist.Normal(0.0, 3.0))
        ...     numpyro.sample("y", dist.Normal(x**2, 1.0), obs=9.0)
        >>> kernel = levymc.interop.numpyro.Kernel(
        ...     model, lambda logdensity_fn: levymc.levy_walk(logdensity_fn, 1.0)
        ... )
        >>> mcmc = numpyro.infer.MCMC(
        ...     kernel,
        ...     num_warmup=100,
        ...     num_samples=1000,
        ...     num_chains=4,
        ...     chain_method="vectorized",
        ...     progress_bar=False,
        ... )
        >>> mcmc.run(jax.random.key(0))
        >>> draws = mcmc.get_samples()["x"]
        >>> draws.shape, bool((draws > 0).any() and (draws < 0).any())
        ((4000,), True)
    """

    sample_field = "z"

    def __init__(
        self,
        model: Callable[..., Any],
        algorithm: Callable[[Callable[[Any], Array]], Algorithm],
        init_strategy: Any = init_to_uniform,
    ) -> None:
        if not callable(model):
            raise TypeError(
                f"`model` must be a function with numpyro.sample in it, got {model!r:.100}. "
                "Give the model itself; its arguments go to MCMC.run."
            )
        remedy = "Such as lambda logdensity_fn: levymc.mafla(logdensity_fn, 0.1)."
        check_function("algorithm", algorithm, remedy)
        self._model = model
        self._algorithm = algorithm
        self._init_strategy = init_strategy
        self._forget()

    def _forget(self) -> None:
        """What `init` learns of the model."""
        self._potential: Any = None
        self._constrain: Any = None
        self._transforms: dict[str, Any] = {}

    @property
    def model(self) -> Callable[..., Any]:
        return self._model

    @property
    def default_fields(self) -> tuple[str, ...]:
        return ("z", "diverging")

    def get_diagnostics_str(self, state: KernelState) -> str:
        return f"acc. prob={float(state.mean_accept_prob):.2f}"

    def init(
        self,
        rng_key: Array,
        num_warmup: int,
        init_params: Any,
        model_args: tuple[Any, ...],
        model_kwargs: dict[str, Any] | None,
    ) -> KernelState:
        """Start, at unconstrained `init_params` if given; those of Gibbs are constrained."""
        kwargs = {} if model_kwargs is None else model_kwargs
        start = self._look(rng_key, model_args, kwargs)
        if init_params is not None:
            start = {**start, **self._unconstrained(init_params, kwargs)}
        begin = partial(self._begin, self._made(model_args, kwargs))
        return (begin if is_prng_key(rng_key) else jax.vmap(begin))(start, rng_key)

    def _look(self, key: Array, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Learn what there is to know of the model, and where to start."""
        started, self._potential, self._constrain, found = initialize_model(
            key,
            taking_all(self._model),
            init_strategy=self._init_strategy,
            dynamic_args=True,
            model_args=args,
            model_kwargs=kwargs,
        )
        self._transforms = {name: biject_to(found[name]["fn"].support) for name in started.z}
        return started.z

    def _unconstrained(self, given: dict[str, Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        if GIBBS_SITES_KWARG not in kwargs:
            return given
        _check_fixed(self._transforms)
        transforms = {name: self._transforms[name] for name in given}
        return transform_fn(transforms, given, invert=True)

    def _made(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> SamplingAlgorithm[Any]:
        """The algorithm, for the model with these arguments, which may be traced."""
        potential_fn = self._potential(*args, **(kwargs or {}))

        def logdensity_fn(position: Any) -> Array:
            return -potential_fn(position)

        algorithm = as_algorithm(self._algorithm(logdensity_fn))
        if algorithm.takes_minibatch:
            raise TypeError(
                f"`algorithm` must need no minibatches, got {algorithm.name}. Run it by "
                "levymc.sample, with the grad_estimator and minibatches of from_numpyro."
            )
        return algorithm

    def _begin(self, algorithm: SamplingAlgorithm[Any], z: Any, key: Array) -> KernelState:
        # NumPyro has drawn the start with this very key.
        key_init, key_chain = jax.random.split(jax.random.fold_in(key, 1))
        zero = jnp.zeros((), jnp.result_type(float))
        inner = algorithm.init(z, rng_key=key_init)
        return KernelState(z, inner, zero, jnp.asarray(False), zero, jnp.int32(0), zero, key_chain)

    def sample(
        self,
        state: KernelState,
        model_args: tuple[Any, ...],
        model_kwargs: dict[str, Any] | None,
    ) -> KernelState:
        """One step, of one chain or of all."""
        step = partial(self._step, self._made(model_args, model_kwargs))
        return (step if is_prng_key(state.rng_key) else jax.vmap(step))(state)

    def _step(self, algorithm: SamplingAlgorithm[Any], state: KernelState) -> KernelState:
        key_step, key_chain = jax.random.split(state.rng_key)
        inner, info = algorithm.step(key_step, state.inner)
        count = state.num_steps + 1
        rate = _of(info, "acceptance_rate", jnp.nan, state.accept_prob)
        mean = state.mean_accept_prob + (rate - state.mean_accept_prob) / count
        return KernelState(
            inner.position,
            inner,
            rate,
            _of(info, "is_divergent", False, state.diverging),
            _of(info, "step_size", jnp.nan, state.step_size),
            count,
            mean,
            key_chain,
        )

    def refresh(
        self,
        state: KernelState,
        model_args: tuple[Any, ...],
        model_kwargs: dict[str, Any] | None,
    ) -> KernelState:
        """The state where the model has other arguments: what it knows of the density anew."""
        moved = self._made(model_args, model_kwargs).moved
        inner = (moved if is_prng_key(state.rng_key) else jax.vmap(moved))(
            state.inner, state.z, state.rng_key
        )
        return state._replace(inner=inner)

    def wrap_model(self, wrapper: Callable[[Any], Any]) -> "Kernel":
        """A kernel alike for `wrapper(model)`."""
        kernel = copy.copy(self)
        kernel._model = wrapper(self._model)
        kernel._forget()
        return kernel

    def postprocess_fn(
        self, model_args: tuple[Any, ...], model_kwargs: dict[str, Any] | None
    ) -> Callable[[Any], Any]:
        """From unconstrained values to constrained and deterministic sites."""
        return self._constrain(*model_args, **(model_kwargs or {}))

    def get_constrain_fn(
        self, model_args: tuple[Any, ...], model_kwargs: dict[str, Any] | None
    ) -> Callable[[Any], Any]:
        """From unconstrained values to constrained ones, without the model."""
        return partial(transform_fn, self._transforms)


def _check_fixed(transforms: dict[str, Any]) -> None:
    """Refuse supports that may depend on a site of another block, which Gibbs would not renew."""
    for name, transform in transforms.items():
        support = transform.codomain
        while hasattr(support, "base_constraint"):
            support = support.base_constraint
        bounds = [getattr(support, bound, 0) for bound in ("lower_bound", "upper_bound")]
        if not all(isinstance(bound, int | float) for bound in bounds):
            raise ValueError(
                f"`model` must have supports with fixed bounds in a block of Gibbs, got those of "
                f"{name!r}, which may depend on other sites. Give the bounds as plain numbers, or "
                "sample a site with fixed bounds and scale it by numpyro.deterministic."
            )


def _of(info: Any, name: str, missing: Any, like: Array) -> Array:
    """A field of an algorithm's info, if it has it."""
    return jnp.asarray(getattr(info, name, missing), like.dtype)
