r"""The likelihood of a belief network by annealed importance sampling, from below and above."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from levymc._checks import check_count, check_key

from ._gibbs import Sweeper
from ._model import BeliefNetwork, Position, bernoulli_logpmf, check_binary, prior_draw

RATE_REMEDY = "levymc.models.pixel_rates(images) keeps rates away from both ends."


class Annealed(NamedTuple):
    """Estimates of log p(v); see `annealed_loglikelihood`.

    loglikelihoods: of each image, the log-mean-exp over the particles.
    log_weights: of each particle and image.
    is_reverse: whether the path was walked back, so that the mean is of 1/w.
    """

    loglikelihoods: Float[Array, " image"]
    log_weights: Float[Array, "particle image"]
    is_reverse: bool = False

    @property
    def mean(self) -> float:
        """Over the images."""
        return float(np.mean(self.loglikelihoods))

    @property
    def standard_error(self) -> float:
        """Of the mean, as an estimate for all images that these are drawn from."""
        values = np.asarray(self.loglikelihoods, float)
        return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.inf

    @property
    def particle_errors(self) -> np.ndarray | None:
        """Standard errors of `loglikelihoods` by the spread of the particles; None for one.

        Those of a way back share their start, and so tell of the rest of the path alone.
        """
        logs = (-1 if self.is_reverse else 1) * np.asarray(self.log_weights, float)
        if len(logs) == 1:
            return None
        weights = np.exp(logs - logs.max(axis=0))
        return weights.std(axis=0, ddof=1) / weights.mean(axis=0) / np.sqrt(len(logs))


def pixel_rates(images: Any) -> Array:
    r"""How often each pixel is 1, (Σ v + 1)/(N + 2): never 0 nor 1, so that its logit is finite.

    >>> import jax.numpy as jnp, levymc
    >>> [round(float(rate), 3) for rate in levymc.models.pixel_rates(jnp.array([[0, 1], [0, 0]]))]
    [0.25, 0.5]
    """
    pixels = np.asarray(images)
    return jnp.asarray((pixels.sum(axis=0, dtype=float) + 1) / (len(pixels) + 2), float)


def annealed_loglikelihood(
    model: BeliefNetwork,
    key: Any,
    position: Position,
    images: Any,
    *,
    base_rate: Any,
    num_temperatures: Any = 1000,
    num_particles: Any = 1,
    reverse_from: Any = None,
    weight_last: bool = False,
) -> Annealed:
    r"""Estimate log p(v) of each image by annealed importance sampling over its hidden units.

    .. math:: w = p_0(v) \prod_{t=1}^T \frac{f_t(h_{t-1})}{f_{t-1}(h_{t-1})}, \qquad
       h_t ∼ K_t(h_{t-1}, ·),

    .. math:: f_t(h) = p(h) \prod_d \text{Bern}\bigl(v_d; σ(a_{td})\bigr), \qquad
       a_t = β_t (W h + c) + (1 - β_t) c_0, \qquad β_t = t/T,

    with h_0 from the prior, K_t a sweep of the Gibbs sampler at β_t, and c_0 the logits of
    `base_rate`.  The weight is updated *first* and then the units move: in the other order, each
    factor is taken at a state that has already adapted to it, and the estimate is too high.

    Targets: E w = p(v), so that log w is too low on average, by less for larger T; and the
    log-mean-exp over R particles too low by less than one particle's.  From `reverse_from`, exact
    draws of h | v, the same path is walked back, with E 1/w = 1/p(v): too high on average.  Such
    draws are there for simulated images only, as the hidden units that they were made from.

    Args:
        model: of `levymc.models.sbn`; sweeps are collapsed, whatever its method.
        key: a random key.
        position: the weights.
        images: (N, D) of 0 and 1.
        base_rate: of each pixel, or one number, in (0, 1): `pixel_rates` of training images.
        num_temperatures: T, of the ladder.
        num_particles: R, for each image.
        reverse_from: hidden units (N, J), to walk backwards from.
        weight_last: update the weight after the move, as some published code does: wrong, and
            here to show by how much.

    Returns:
        An `Annealed`.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> import jax, levymc
        >>> model = levymc.models.sbn(16, 4)
        >>> position = model.init(jax.random.key(0), scale=1.0)
        >>> images, hidden = model.simulate(jax.random.key(1), position, 50)
        >>> rates = levymc.models.pixel_rates(images)
        >>> estimate = levymc.models.annealed_loglikelihood(
        ...     model, jax.random.key(2), position, images, base_rate=rates, num_temperatures=200
        ... )
        >>> bool(abs(estimate.mean - model.exact_loglikelihood(position, images).mean()) < 0.1)
        True

    References: [neal2001]; [salakhutdinov2008dbn] for the base rates; [grosse2015] for the
        way back.
    """
    temperatures = check_count("num_temperatures", num_temperatures, "1000 is a good beginning.")
    particles = check_count("num_particles", num_particles, "It is the number for each image.")
    base = _base_logits(base_rate, position)
    check_binary("images", images)
    tiled = jnp.tile(jnp.asarray(images), (particles, 1))
    key_start, key_path = jax.random.split(check_key(key))
    betas = jnp.asarray(np.linspace(0, 1, temperatures + 1), base.dtype)
    if reverse_from is None:
        start, sign = prior_draw(key_start, position, len(tiled)), 1
    else:
        start = jnp.tile(jnp.asarray(reverse_from).astype(jnp.uint8), (particles, 1))
        betas, sign = betas[::-1], -1
    walked = _walk(model.sweeps, weight_last, key_path, position, tiled, base, start, betas)
    logs = walked.reshape(particles, -1)
    together = jax.nn.logsumexp(logs, axis=0) - jnp.asarray(np.log(particles), base.dtype)
    first = bernoulli_logpmf(base, jnp.asarray(images))
    return Annealed(first + sign * together, first + sign * logs, is_reverse=sign < 0)


def _base_logits(base_rate: Any, position: Position) -> Array:
    rate = np.asarray(base_rate, float)
    if not np.all((rate > 0) & (rate < 1)):
        raise ValueError(f"`base_rate` must lie in (0, 1), got {base_rate}. {RATE_REMEDY}")
    bias = position["visible_bias"]
    return jnp.broadcast_to(jnp.asarray(np.log(rate / (1 - rate)), bias.dtype), bias.shape)


@partial(jax.jit, static_argnums=(0, 1))
def _walk(
    sweeps: Sweeper,
    weight_last: bool,
    key: Array,
    position: Position,
    images: Array,
    base: Array,
    start: Array,
    betas: Array,
) -> Array:
    """Σ log f_t(h_{t-1}) - log f_{t-1}(h_{t-1}) along the path of `betas`."""
    weights, pixels = position["weights"], jnp.asarray(images, position["weights"].dtype)
    evidence = pixels @ weights
    bias_evidence, base_evidence = pixels @ position["visible_bias"], pixels @ base

    def linear(beta: Array, hidden: Array) -> Array:
        """Σ v a, whose rest Σ ζ(a) the sweeps return."""
        own = jnp.sum(jnp.where(hidden > 0, evidence, 0), axis=1) + bias_evidence
        return beta * own + (1 - beta) * base_evidence

    def swept_at(beta: Array, hidden: Array, words: Array, num_sweeps: int) -> Any:
        return sweeps(
            beta * weights,
            beta * position["visible_bias"] + (1 - beta) * base,
            beta * evidence + position["hidden_bias"],
            hidden,
            words,
            num_sweeps=num_sweeps,
        )

    def move(carry: tuple[Array, ...], given: tuple[Array, Array]) -> tuple[tuple, None]:
        hidden, old_beta, old_rest, log_weight = carry
        beta, words = given
        swept = swept_at(beta, hidden, words, 1)
        at, new_rest = hidden, swept.before
        if weight_last:
            at, new_rest = swept.hidden, swept.after
            old_rest = swept_at(old_beta, at, words, 0).after
        change = linear(beta, at) - new_rest - linear(old_beta, at) + old_rest
        return (swept.hidden, beta, swept.after, log_weight + change), None

    words = jax.random.bits(key, (len(betas) - 1, 2), jnp.uint32)
    first_rest = swept_at(betas[0], start, words[0], 0).before
    carry = start, betas[0], first_rest, jnp.zeros(len(pixels), pixels.dtype)
    (_, _, _, log_weight), _ = jax.lax.scan(move, carry, (betas[1:], words))
    return log_weight
