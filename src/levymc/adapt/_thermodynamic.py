r"""Power posteriors p L^β for all β of a ladder, as the chains of one program."""

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from levymc._checks import check_count, check_function, check_key, check_positive
from levymc._trees import module
from levymc.algorithms import SamplingAlgorithm, as_algorithm, grad_estimator
from levymc.run import batches, marks, sample

from ._path import PathEvidence, ladder, path_evidence, t_quantile

Maker = Callable[[Any, Any], Any]
KERNEL = (
    "It makes an algorithm of a log density and a step size, such as levymc.mafla; of a gradient "
    "estimator where `batch_size` is given, such as levymc.sgld."
)
LEVEL = 0.05  # at which a change by halving the steps is taken for a bias
HIDDEN = 5.0  # standard errors of the result: a bias of which should have been seen


class PowerState(NamedTuple):
    """That of the algorithm that makes the steps, and how many of them were not made."""

    inner: Any
    num_divergent: Array

    @property
    def position(self) -> Any:
        return getattr(self.inner, "position", self.inner)


class PowerInfo(NamedTuple):
    """log L, or its estimate from the minibatch, where the step began; that estimate's variance.

    num_divergent: of all steps so far, also of those that are not kept.
    """

    loglikelihood: Any
    noise_variance: Any
    is_divergent: Any
    num_divergent: Any


@module(static=("kernel", "logprior_fn", "loglikelihood_fn"))
class Power(SamplingAlgorithm[PowerState]):
    """An algorithm for p L^β, β and step size among its numbers: a ladder is one sweep.

    inside: a position at which L is not zero.
    """

    takes_minibatch = False
    kernel: Maker
    logprior_fn: Callable[[Any], Any]
    loglikelihood_fn: Callable[..., Any]
    inside: Any
    beta: Any
    step_size: Any

    @property
    def name(self) -> str:
        return "power posterior"

    def init(self, position: Any, rng_key: Any = None) -> PowerState:
        return PowerState(self._inner().init(position, rng_key=rng_key), jnp.int32(0))

    def step(self, key: Array, state: PowerState, *minibatch: Any) -> tuple[PowerState, PowerInfo]:
        inner, info = self._inner().step(key, state.inner, *minibatch)
        known = self._known(state.position, *minibatch)
        is_divergent = jnp.asarray(getattr(info, "is_divergent", False))
        count = state.num_divergent + is_divergent.astype(jnp.int32)
        return PowerState(inner, count), PowerInfo(*known, is_divergent, count)

    def _inner(self) -> SamplingAlgorithm[Any]:
        return as_algorithm(self.kernel(self._target(), self.step_size))

    def _target(self) -> Any:
        def logdensity(position: Any) -> Array:
            return self.logprior_fn(position) + self._power(position)

        return logdensity

    def _power(self, position: Any, *point: Any) -> Array:
        """log L^β in the precision of log L; zero at β = 0, also where L is zero.

        L is then looked at elsewhere, so that its derivatives are zero, too: where they are NaN
        0 · NaN is not, and a sampler would refuse the place.
        """
        is_used = jnp.asarray(self.beta) > 0
        seen = jax.tree.map(
            lambda x, y: jnp.where(is_used, x, jnp.asarray(y, jnp.result_type(x))),
            position,
            self.inside,
        )
        value = self.loglikelihood_fn(seen, *point)
        return jnp.where(is_used, jnp.asarray(self.beta, jnp.result_type(value)) * value, 0)

    def _known(self, position: Any) -> tuple[Any, Any]:
        return None, None  # log L is what the run keeps


@module(static=("kernel", "logprior_fn", "loglikelihood_fn", "data_size"))
class MinibatchPower(Power):
    """The same from minibatches: the estimate is at the position that has not seen this one."""

    takes_minibatch = True
    data_size: int

    def _target(self) -> Any:
        return grad_estimator(self.logprior_fn, self._power, self.data_size)

    def _known(self, position: Any, *minibatch: Any) -> tuple[Any, Any]:
        terms = jax.vmap(partial(self.loglikelihood_fn, position))(*minibatch)
        variance = self.data_size**2 / terms.shape[0] * jnp.var(terms, ddof=1)
        return self.data_size * jnp.mean(terms), variance


def thermodynamic_integration(
    logprior_fn: Callable[[Any], Any],
    loglikelihood_fn: Callable[..., Any],
    kernel: Maker,
    step_size: Any,
    key: Any,
    initial_positions: Any,
    num_steps: int,
    *,
    betas: Any = 20,
    burn_in: int | None = None,
    thin: int = 1,
    data: Any = None,
    batch_size: int | None = None,
    evaluates_all: bool = False,
    progress: bool = True,
) -> PathEvidence:
    r"""The log evidence of a model by samplers of its power posteriors p L^β,

    .. math:: \log Z = \log \int L(x)\, p(x)\, dx = \int_0^1 E_β[\log L]\, dβ ,

    with full gradients or from minibatches, and by stepping stones where log L is known.  All rungs
    and chains are chains of one program; `path_evidence` says how they are put together.

    With `batch_size`, E_β[log L] is a mean of (N/|Ω|) Σ log p(y_i | x), each at a position that has
    not seen its minibatch: unbiased for the law that the sampler has.  Stepping stones need
    exp(δ log L), of which a minibatch gives no unbiased estimate: there are none, unless
    `evaluates_all` looks at all data at the kept draws.

    Targets: log Z, exactly for an exact sampler as its chains grow; but for the rule between the
    rungs, see `PathEvidence.discretisation_error`.  Of an unadjusted one (`ula`, `sgld`) each rung
    is biased by O(η): it is run with half the steps, too, and `step_bias` tells by how much the
    result moved, with an error above that of the result: a bias of about one standard error is not
    seen.  Of another library's sampler it is not known whether it is exact: it is taken for exact,
    and flagged.  `fla` and `sgfla` with α < 2 have laws of their own, with tails in which the mean
    of a quadratic log L is infinite: they are flagged.

    Not valid when: L is zero on a part of the prior.  The mean of log L is then -∞ at β = 0, which
    is refused once a kept draw of the prior is there, and a part that has none is left out.  Nor
    when chains do not reach a rung's law in the steps they have.  Where all start at the same
    places, that for a model with modes is an invitation; for these `levymc.auto`, or
    `levymc.adapt.log_evidence` of its draws, is the better way.  Neither `standard_error` nor
    `change` sees that all chains are in modes alike, and stepping stones that are above `value` are
    a sign of it.  Run it twice: from draws of the prior it is then too low, and from a good mode of
    the posterior too high; half of what is between the two is an error that no chain knows of.

    Args:
        logprior_fn: log p up to a constant; p must be a law.
        loglikelihood_fn: log L with all its constants; of one data point, called as (position,
            data point), where `data` is given.
        kernel: of (log density, step size), gives the algorithm, such as `levymc.mafla`, or of
            (gradient estimator, step size) with `batch_size`, such as `levymc.sgld`.
        step_size: η > 0, or a function of β: a posterior of N data is about √N times narrower
            than its prior.
        key: a JAX random key.
        initial_positions: a pytree with the chains, at least two of them, along the first axis:
            every rung starts there; or a function of β that gives one, for chains that were cooled
            to each rung before.
        num_steps: of each chain after burn-in.
        betas: from 0 to 1; or K, for (i/K)^5.
        burn_in: steps before; a half of `num_steps` if not given.
        thin: use every thin-th step, of which there have to be two.
        data: the data points, a pytree with them along the first axis.
        batch_size: data points of a minibatch, drawn with replacement.
        evaluates_all: with `batch_size`, look at all data at each kept draw.
        progress: show a bar, in a terminal.

    Returns: `PathEvidence`.

    Raises:
        ValueError, TypeError: an argument outside its range; log L that is not finite at a draw.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> y = jnp.array([0.5, 1.5, -0.2, 0.9])
        >>> found = levymc.adapt.thermodynamic_integration(
        ...     lambda x: -x * x / 2,
        ...     lambda x: -jnp.sum((y - x) ** 2 + jnp.log(2 * jnp.pi)) / 2,
        ...     levymc.mafla,
        ...     lambda beta: 1 / (1 + 4 * beta),
        ...     jax.random.key(0),
        ...     jnp.zeros(8),
        ...     400,
        ...     betas=8,
        ...     progress=False,
        ... )
        >>> truth = -2 * jnp.log(2 * jnp.pi) - jnp.log(5) / 2 - (y @ y - y.sum() ** 2 / 5) / 2
        >>> bool(abs(found.value - truth) < 5 * found.standard_error), found.warnings
        (True, ())

    References: [friel2008]; [xie2011]; minibatches as in [simsekli2017], section 3.4.
    """
    check_function("kernel", kernel, KERNEL, 2)
    num_steps = check_count("num_steps", num_steps, "Such as 1000.", least=4)
    powers, is_minibatch = ladder(betas), batch_size is not None
    starts = _starts(initial_positions, powers)
    num_chains = _count_chains(starts)
    _check_kept(thin, num_steps)
    if evaluates_all and not is_minibatch:
        raise ValueError(
            "`evaluates_all` must be False without `batch_size`, got True. All data are looked at."
        )
    whole = _of_all(logprior_fn, loglikelihood_fn, data)
    inside = jax.tree.map(lambda leaf: np.asarray(leaf)[0], starts[-1])
    rung: Power = Power(kernel, logprior_fn, whole, inside, 1.0, 1.0)
    if is_minibatch:
        check_count("batch_size", batch_size, "At least two, for their variance.", least=2)
        size = _data_size(data)
        rung = MinibatchPower(kernel, logprior_fn, loglikelihood_fn, inside, 1.0, 1.0, size)
    steps = _step_sizes(step_size, powers)
    probe = as_algorithm(kernel(rung._target(), steps[-1]))
    is_estimated = is_minibatch and not evaluates_all
    draws = _run(
        rung,
        check_key(key),
        starts,
        num_chains,
        np.outer((1.0, 0.5) if probe.is_exact is False else (1.0,), steps),
        powers,
        keep=_nothing if is_estimated else whole,
        num_steps=num_steps,
        burn_in=num_steps // 2 if burn_in is None else burn_in,
        thin=thin,
        minibatches=None if batch_size is None else batches(data, batch_size),
        progress=progress,
    )
    found = [path_evidence(powers, *part) for part in zip(*draws[:2], strict=True)]
    return _joined(found, _notes(probe, draws.num_divergent), num_chains)


def _of_all(logprior_fn: Any, loglikelihood_fn: Any, data: Any) -> Callable[[Any], Any]:
    """log L of a position."""
    check_function("logprior_fn", logprior_fn, "It is log p of a position.")
    remedy = "Of a position; of (position, data point) where `data` is given."
    check_function("loglikelihood_fn", loglikelihood_fn, remedy, 1 if data is None else 2)
    if data is None:
        return loglikelihood_fn
    points = jax.tree.map(jnp.asarray, data)
    return lambda position: jnp.sum(jax.vmap(partial(loglikelihood_fn, position))(points))


def _starts(positions: Any, powers: np.ndarray) -> list[Any]:
    """Those of each rung."""
    if callable(positions):
        return [positions(float(beta)) for beta in powers]
    return [positions] * len(powers)


def _count_chains(starts: list[Any]) -> int:
    leaves = jax.tree.leaves(starts)
    counts = sorted({np.shape(leaf)[0] if np.ndim(leaf) else 0 for leaf in leaves})
    if not counts or counts[0] < 2:
        raise ValueError(
            "`initial_positions` must have at least two chains along the first axis of every leaf, "
            f"got first axes of {counts}. Errors are over chains: give several starts, such as "
            "jnp.zeros((8, 3)) for 8 chains of 3 coordinates."
        )
    if len(counts) > 1:
        raise ValueError(
            "`initial_positions` must have as many chains in every leaf, and at every β, got first "
            f"axes of {counts}. Give each rung the same number of starts."
        )
    return counts[0]


def _check_kept(thin: Any, num_steps: int) -> None:
    count = marks.as_marks("thin", thin, num_steps).count_until(num_steps)
    if count < 2:
        raise ValueError(
            f"`thin` must keep at least two of the {num_steps} steps, got {thin!r}, which keeps "
            f"{count}. Make more steps, or keep more of them."
        )


def _nothing(position: Any) -> Array:
    return jnp.zeros((), jnp.float32)


def _data_size(data: Any) -> int:
    if data is None:
        raise ValueError(
            "`data` must be given with `batch_size`, got None. Minibatches "
            "are drawn from these points."
        )
    return len(jax.tree.leaves(data)[0])


def _step_sizes(step_size: Any, powers: np.ndarray) -> np.ndarray:
    given = step_size if callable(step_size) else lambda beta: step_size
    steps = np.array([float(given(float(beta))) for beta in powers])
    check_positive("step_size", steps, "Or a function of β that gives a positive number.")
    return steps


class _Draws(NamedTuple):
    """log L with the axes (scale of the steps, β, chain, draw), and the variances of estimates."""

    values: np.ndarray
    noise_variances: Any
    num_divergent: int  # from the first kept step to the last


def _run(
    rung: Power,
    key: Array,
    rungs: list[Any],
    num_chains: int,
    steps: np.ndarray,
    powers: np.ndarray,
    **how: Any,
) -> _Draws:
    """All rungs, from their starts, for each row of step sizes, as the chains of one run."""
    algorithms = [
        dataclasses.replace(rung, beta=beta, step_size=step)
        for row in steps
        for beta, step in zip(powers, row, strict=True)
        for _ in range(num_chains)
    ]
    starts = jax.tree.map(
        lambda *leaves: jnp.concatenate([jnp.asarray(leaf) for leaf in leaves] * len(steps)),
        *rungs,
    )
    made: Any = sample(algorithms, key, starts, **how)
    if made.is_interrupted:
        raise KeyboardInterrupt
    shape = (*steps.shape, num_chains, -1)
    counts = np.asarray(made.info.num_divergent, np.int64)
    later = counts[:, -1] - counts[:, 0]
    divergent = int(np.sum(later) + np.count_nonzero(made.info.is_divergent[:, 0]))
    if how["keep"] is not _nothing:
        values = np.asarray(made.positions, np.float64).reshape(shape)
        return _Draws(values, [None] * len(steps), divergent)
    values = np.asarray(made.info.loglikelihood, np.float64).reshape(shape)
    noises = np.asarray(made.info.noise_variance, np.float64).reshape(shape)
    return _Draws(values, noises, divergent)


def _has_own_law(algorithm: Any) -> bool:
    """Whether it takes c_α ∇log φ for the drift with α < 2, untested: a bias that always stays."""
    if hasattr(algorithm, "algorithm"):  # that jumps, or other things, are added to
        return _has_own_law(algorithm.algorithm)
    drift = getattr(algorithm, "drift", algorithm)
    is_tested = getattr(algorithm, "is_exact", None) is not False
    if is_tested or getattr(drift, "coefficients", None) is None:
        return False
    return any(bool(np.any(np.asarray(one) < 2)) for one in jax.tree.leaves(algorithm.how.alpha))


def _notes(probe: SamplingAlgorithm[Any], num_divergent: int) -> list[str]:
    notes = []
    if _has_own_law(probe):
        notes.append(
            f"{probe.name} does not sample p L^β for α < 2, however small its steps, and its tails "
            "are so heavy that the mean of log L may be infinite. Take levymc.mafla, or "
            "levymc.sgld for minibatches."
        )
    if probe.is_exact is None:
        notes.append(
            f"It is not known whether {probe.name} is exact, and it was taken for it: nothing was "
            "halved. If its law depends on the step size, run it again with half the steps."
        )
    if num_divergent and probe.is_exact is not True:
        notes.append(f"At least {num_divergent} steps were not made: take smaller ones.")
    return notes


def _joined(found: list[PathEvidence], notes: list[str], num_chains: int) -> PathEvidence:
    """The evidence by the smallest steps, and how far it moved."""
    last, notes = found[-1], [*found[-1].warnings, *notes]
    if len(found) == 1:
        return last._replace(warnings=tuple(notes))
    bias = found[0].value - last.value
    error = math.hypot(found[0].standard_error, last.standard_error)
    seen = t_quantile(LEVEL / 2, num_chains) * error
    if abs(bias) > max(last.standard_error, seen):
        notes.append(
            f"Halving the steps changed it by {-bias:.2g} ± {error:.2g}: about as much bias may be "
            f"left, beside a standard error of {last.standard_error:.2g}. Take smaller steps."
        )
    elif seen > HIDDEN * last.standard_error:
        notes.append(
            f"Halving the steps changed it by {-bias:.2g} ± {error:.2g}, which does not tell "
            f"whether there is a bias: one of {seen:.2g}, beside a standard error of "
            f"{last.standard_error:.2g}, would not be seen. Run more chains, or longer."
        )
    return last._replace(step_bias=bias, step_bias_error=error, warnings=tuple(notes))
