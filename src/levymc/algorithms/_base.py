"""What all algorithms share: their shape, state and info, and checks of where a chain starts."""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc._checks import check_position, check_scalar_output, is_traced
from levymc._trees import module
from levymc.drifts import LogDensity

StateT = TypeVar("StateT")


class State(NamedTuple):
    """Where the chain is, and how many steps it has made."""

    position: Any
    step: Array


class LangevinState(NamedTuple):
    """Where the chain is, log φ and the drift there, and how many steps it has made."""

    position: Any
    logdensity: Array
    drift: Any
    step: Array


class Info(NamedTuple):
    """What a person may ask of a step.

    step_size: η.
    acceptance_rate: probability of acceptance; 1 for algorithms without a test.
    is_divergent: the step would have left the finite numbers or the support, and was not made; of
        algorithms that try several points in a step, one of them would have.
    largest_jump: the largest coordinate of the noise.
    taming: how much the drift's step was shortened, from 0 (not) to 1.
    is_outside: it is divergent as it would have ended where log φ is not finite; None for
        algorithms to which that does no harm, and those that know no log φ.
    drift_error: estimated error of the drift where the step began, the largest of the coordinates,
        relative as the drift says; None where the drift has no estimate.
    jumps_tried, jumps_accepted: Lévy jumps between modes, since the last draw; None for algorithms
        without.  See `levymc.jumping`.
    is_above_bound: the step met a point where log φ is above the upper bound that was given for it;
        None for algorithms without one.  See `levymc.proximal`.
    """

    step_size: Array
    acceptance_rate: Array
    is_divergent: Array
    largest_jump: Array
    taming: Array
    is_outside: Any = None
    drift_error: Array | None = None
    jumps_tried: Array | None = None
    jumps_accepted: Array | None = None
    is_above_bound: Array | None = None


@runtime_checkable
class Algorithm(Protocol):
    """What can be run: BlackJAX's shape, which its samplers have, and ours."""

    @property
    def init(self) -> Callable[..., Any]: ...

    @property
    def step(self) -> Callable[..., Any]: ...


class SamplingAlgorithm(Generic[StateT]):
    """An algorithm as a pytree: its numbers are inputs of compiled programs, its functions static.

    `init(position)` gives a state; `step(key, state)` the next, and what to know of it.
    Stochastic-gradient algorithms take a minibatch, too: `step(key, state, minibatch)`.
    """

    takes_minibatch: ClassVar[bool | None] = None  # None: it is not known
    is_exact: ClassVar[bool | None] = None  # whether its target is φ at every step size

    @property
    def name(self) -> str:
        """As a user knows it."""
        return type(self).__name__

    @property
    def step_schedule(self) -> Callable[[Any], Any] | None:
        """The step size as a function of n = 1, 2, …, if it is one."""
        return None

    def init(self, position: Any, rng_key: Any = None) -> StateT:
        raise NotImplementedError

    def start_logdensity(self, position: Any) -> Array | None:
        """What must be finite where a chain starts, unless the state holds it."""
        return None

    def step(self, key: Array, state: StateT, *minibatch: Any) -> tuple[StateT, Any]:
        raise NotImplementedError

    def moved(self, state: StateT, position: Any, rng_key: Any = None) -> StateT:
        """The state of a chain that was put elsewhere: as at a start, but its steps go on."""
        fresh: Any = self.init(position, rng_key=rng_key)
        return fresh._replace(step=state.step) if hasattr(state, "step") else fresh

    def prepared(self, positions: Any) -> "SamplingAlgorithm[StateT]":
        """The algorithm as it is best for chains that start at positions, along their first axis.

        Called once before a run, outside compiled programs.
        """
        return self


@module(static=("algorithm",))
class Foreign(SamplingAlgorithm[Any]):
    """An algorithm of another library, part of the compiled program with all its numbers."""

    algorithm: Any

    @property
    def name(self) -> str:
        return name_of_other(self.algorithm)

    def init(self, position: Any, rng_key: Any = None) -> Any:
        takes_key = "rng_key" in inspect.signature(self.algorithm.init).parameters
        return self.algorithm.init(position, **({"rng_key": rng_key} if takes_key else {}))

    def step(self, key: Array, state: Any, *minibatch: Any) -> tuple[Any, Any]:
        return self.algorithm.step(key, state, *minibatch)


def name_of_other(algorithm: Algorithm) -> str:
    """That of the module of another library's algorithm, such as "nuts".

    BlackJAX makes most steps in one place, each around a kernel that is in the sampler's module.
    """
    made: Any = algorithm.step
    if inspect.isfunction(made):
        made = inspect.getclosurevars(made).nonlocals.get("kernel", made)
    made_by = getattr(made, "__module__", "") or ""
    return made_by.rpartition(".")[2] or type(algorithm).__name__


def as_algorithm(algorithm: Any) -> SamplingAlgorithm[Any]:
    """Ours as it is; one of another library as one of ours."""
    if isinstance(algorithm, SamplingAlgorithm):
        return algorithm
    if not (hasattr(algorithm, "init") and hasattr(algorithm, "step")):
        raise TypeError(
            f"`algorithm` must have `init` and `step`, got {algorithm!r}. Make one, such as "
            "levymc.mafla(logdensity_fn, step_size) or blackjax.nuts(...)."
        )
    wanted = inspect.signature(algorithm.step).parameters.get("step_size")
    if wanted is not None and wanted.default is inspect.Parameter.empty:
        raise TypeError(
            f"`algorithm` must know its step size, got {algorithm!r}, whose step asks for one. "
            "Complete it by levymc.interop.blackjax.stochastic_gradient(algorithm, step_size)."
        )
    return Foreign(algorithm)


def check_minibatch(algorithm: SamplingAlgorithm[Any], minibatch: tuple[Any, ...]) -> None:
    """Refuse a step without the minibatch that it takes, and one with a minibatch it would not."""
    if len(minibatch) == bool(algorithm.takes_minibatch):
        return
    if algorithm.takes_minibatch:
        raise TypeError(
            f"`step` of {algorithm.name} must be given a minibatch, got {len(minibatch)} of them. "
            "Call step(key, state, minibatch)."
        )
    raise TypeError(
        f"`step` of {algorithm.name} takes no minibatch, got {len(minibatch)}. Call "
        "step(key, state); for stochastic gradients use levymc.sgfla or levymc.sgld."
    )


def check_start(position: Any) -> None:
    """Refuse a start that is no pytree of finite floating arrays with a coordinate."""
    check_position("position", position)
    if is_traced(position):
        return
    for path, leaf in jax.tree_util.tree_leaves_with_path(position):
        if not bool(jnp.all(jnp.isfinite(leaf))):
            where = "position" + jax.tree_util.keystr(path)
            raise ValueError(f"`{where}` must be finite, got {leaf}. Start where log φ is finite.")


def start_at(position: Any) -> State:
    """A chain that has made no step."""
    check_start(position)
    return State(jax.tree.map(jnp.asarray, position), jnp.int32(0))


def start(logdensity_fn: LogDensity, position: Any) -> tuple[Any, Array]:
    """The position and log φ there, which must be a finite number."""
    position = start_place(logdensity_fn, position)
    logdensity = jnp.asarray(logdensity_fn(position))
    check_start_logdensity("logdensity_fn", logdensity, position)
    return position, logdensity


def start_place(logdensity_fn: LogDensity, position: Any) -> Any:
    """The position, where log φ must be a number; it is not evaluated."""
    check_start(position)
    position = jax.tree.map(jnp.asarray, position)
    check_scalar_output("logdensity_fn", logdensity_fn, position)
    return position


def check_start_logdensity(name: str, logdensity: Array, position: Any) -> None:
    """Refuse a start outside the support."""
    if not is_traced(logdensity) and not bool(jnp.all(jnp.isfinite(logdensity))):
        raise ValueError(
            f"`{name}` must be finite at the start, got {logdensity} at {position}. "
            "Start inside the support of the target."
        )


def is_finite(tree: Any) -> Array:
    """Whether all entries of a pytree are."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))


def keep_finite(proposed: Any, current: Any) -> tuple[Any, Array]:
    """`proposed` where all of it is finite, otherwise `current`; and whether it was not."""
    is_made = is_finite(proposed)
    return choose(is_made, proposed, current), ~is_made


def choose(condition: Array, one: Any, other: Any) -> Any:
    """One pytree or the other."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)


def position_dtype(position: Any) -> Any:
    return jnp.result_type(*jax.tree.leaves(position))


def add(position: Any, *moves: Any) -> Any:
    """position + Σ moves, each leaf in its own precision."""
    return jax.tree.map(lambda x, *parts: (x + sum(parts)).astype(x.dtype), position, *moves)
