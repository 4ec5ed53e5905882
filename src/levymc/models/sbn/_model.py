r"""Sigmoid belief networks with one hidden layer."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, ArrayLike, UInt8

from levymc._checks import check_count, check_key, check_positive, check_real, is_traced

from ._gibbs import Sweeper, sweeper
from ._polya_gamma import sweep_polya_gamma

Position = dict[str, Array]
Minibatch = dict[str, Any]
Estimate = Callable[[Position, Minibatch], Position]
METHODS = ("collapsed", "polya-gamma")
MOST_UNITS = 20  # whose states can be added up
CHUNK = 1 << 10  # states whose activations are held at once


@dataclass(frozen=True)
class BeliefNetwork:
    """The model that `sbn` describes.

    Models of equal fields are equal, and so are their functions.

    sweeps: what makes collapsed sweeps.
    """

    num_visible: int
    num_hidden: int
    prior_scale: float
    num_sweeps: int
    method: str
    sweeps: Sweeper

    def init(
        self,
        key: Any,
        scale: Any = 0.1,
        visible_bias: ArrayLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> Position:
        """W of N(0, scale²), b = 0, and c = 0 or as given.

        Such as the logits of `levymc.models.pixel_rates(images)`.
        """
        check_positive("scale", scale, "At zero all hidden units are alike, and stay so.")
        kind = jnp.dtype(dtype or float)
        shape = (self.num_visible, self.num_hidden)
        bias = jnp.zeros(self.num_visible) if visible_bias is None else visible_bias
        remedy = "The logit of a pixel that is always 0 is not: smooth rates."
        check_real("visible_bias", bias, remedy)
        return {
            "weights": jnp.asarray(scale, kind) * jax.random.normal(check_key(key), shape, kind),
            "hidden_bias": jnp.zeros(self.num_hidden, kind),
            "visible_bias": jnp.broadcast_to(jnp.asarray(bias, kind), (self.num_visible,)),
        }

    def logprior(self, position: Position) -> Array:
        """Up to a constant."""
        squares = [jnp.sum(leaf**2) for leaf in jax.tree.leaves(position)]
        return -jnp.sum(jnp.stack(squares)) / (2 * self.prior_scale**2)

    def logjoint(self, position: Position, images: ArrayLike, hidden: ArrayLike) -> Array:
        """log p(v, h) of each image."""
        likelihood = bernoulli_logpmf(activations(position, hidden), images)
        return likelihood + bernoulli_logpmf(position["hidden_bias"], hidden)

    def grad_estimator(self, data_size: Any) -> Estimate:
        """The function of (position, minibatch) that estimates a gradient, for `levymc.sgfla`.

        Of minibatches {"images": ..., "hidden": ...}; unbiased where the hidden units are exact
        draws.
        """
        size = check_count("data_size", data_size, "It is the number of images N.")
        return _gradient(self, size)

    def gibbs(
        self, key: Array, position: Position, images: ArrayLike, hidden: ArrayLike,
        sweeps: Any = None,
    ) -> UInt8[Array, "image unit"]:  # fmt: skip
        """Draws of h | v, each unit `sweeps` times; as often as the model says if not given."""
        count = self.num_sweeps
        if sweeps is not None:
            count = check_count("sweeps", sweeps, "At least one.")
        units = jnp.asarray(hidden).astype(jnp.uint8)
        pixels = jnp.asarray(images, position["weights"].dtype)
        if self.method == "polya-gamma":
            one = lambda h, k: (sweep_polya_gamma(k, position, pixels, h), None)  # noqa: E731
            return jax.lax.scan(one, units, jax.random.split(key, count))[0]
        words = jax.random.bits(key, (2,), jnp.uint32)
        weights, bias = position["weights"], position["visible_bias"]
        drive = pixels @ weights + position["hidden_bias"]
        return self.sweeps(weights, bias, drive, units, words, num_sweeps=count).hidden

    def latents(
        self, key: Array, position: Position, minibatch: Minibatch, memory: Array | None = None
    ) -> tuple[Minibatch, Array | None]:
        """Complete a minibatch {"images": ...}, for `levymc.augmented`.

        Without a memory, sweeps begin from a draw of the prior.  With `memory(num_images)` they
        begin where they ended when the image was last seen; the minibatch must then have "index",
        too, the images' places among all.
        """
        key_start, key_sweeps = jax.random.split(key)
        images = minibatch["images"]
        if memory is None:
            start = prior_draw(key_start, position, len(images))
        else:
            start = memory[minibatch["index"]]
        hidden = self.gibbs(key_sweeps, position, images, start)
        kept = None if memory is None else memory.at[minibatch["index"]].set(hidden)
        return {**minibatch, "hidden": hidden}, kept

    def memory(self, num_images: int) -> UInt8[Array, "image unit"]:
        """Hidden units that are all off, for the sweeps of `latents` to begin with."""
        return jnp.zeros((num_images, self.num_hidden), jnp.uint8)

    def means(self, position: Position, hidden: ArrayLike) -> Array:
        """The probability of each pixel."""
        return jax.nn.sigmoid(activations(position, hidden))

    def simulate(self, key: Any, position: Position, count: Any) -> tuple[Array, Array]:
        """Images and hidden units."""
        number = check_count("count", count, "It is the number of images.")
        key_hidden, key_images = jax.random.split(check_key(key))
        hidden = prior_draw(key_hidden, position, number)
        images = jax.random.bernoulli(key_images, self.means(position, hidden))
        return images.astype(jnp.uint8), hidden

    def exact_loglikelihood(self, position: Position, images: ArrayLike) -> Array:
        r"""log p(v) = log Σ_h p(h) p(v | h) of each image, by adding up 2^J terms, J ≤ 20.

        For more units `levymc.models.annealed_loglikelihood` estimates it.
        """
        num_hidden = position["weights"].shape[1]
        if num_hidden > MOST_UNITS:
            raise ValueError(
                f"`weights` must have at most {MOST_UNITS} hidden units, got {num_hidden}. "
                "For more, estimate with levymc.models.annealed_loglikelihood."
            )
        check_binary("images", images)
        dtype = position["weights"].dtype
        pixels = jnp.asarray(images, dtype)
        chunk = min(CHUNK, 1 << num_hidden)

        def add(total: Array, first: Array) -> tuple[Array, None]:
            numbers = first + jnp.arange(chunk)
            hidden = (numbers[:, None] >> jnp.arange(num_hidden) & 1).astype(dtype)
            return jnp.logaddexp(total, _log_sum(position, pixels, hidden)), None

        firsts = jnp.asarray(np.arange(0, 1 << num_hidden, chunk))
        start = jnp.full(len(pixels), -jnp.inf, dtype)
        return jax.lax.scan(add, start, firsts)[0]


def sbn(
    num_visible: Any,
    num_hidden: Any,
    *,
    sweeps: Any = 5,
    method: str = "collapsed",
    prior_scale: Any = 1.0,
    num_threads: Any = 1,
    backend: str | None = None,
) -> BeliefNetwork:
    r"""Binary images from one layer of hidden causes,

    .. math:: h_j ∼ \text{Bern}(σ(b_j)), \qquad v_d ∼ \text{Bern}(σ(W_d · h + c_d)), \qquad
       W_{dj}, b_j, c_d ∼ N(0, s^2) .

    Positions are {"weights": (D, J), "hidden_bias": (J,), "visible_bias": (D,)}.  Images are (N, D)
    and hidden units (N, J), of 0 and 1 in any dtype; units that are drawn are uint8.  Grey values
    are refused where they are known, and make a gradient NaN, so that a run counts its steps as
    divergent.

    Not valid when: few sweeps from a cold start do not reach p(h | v): the gradient is then that of
    another model.  The permutation of the units is not identified; a mean of W means nothing.

    Args:
        num_visible, num_hidden: D and J.
        sweeps: of the Gibbs sampler for each gradient.
        method: "collapsed", one unit given the others, or "polya-gamma", given augmentation
            variables, too.  On a network trained on digits the latter forgets nine times more
            slowly: from the prior, 20 of its sweeps end where 2 collapsed ones do.
        prior_scale: s > 0.
        num_threads: of the compiled sweeps; draws are the same for any number.
        backend: "native" or "jax", or whatever works here; the kernel is for float32 on a CPU.

    Returns:
        A `BeliefNetwork`, whose methods are the functions of the model.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> import jax, levymc
        >>> model = levymc.models.sbn(16, 4)
        >>> position = model.init(jax.random.key(0), dtype="float32")
        >>> images, hidden = model.simulate(jax.random.key(1), position, 50)
        >>> algorithm = levymc.augmented(
        ...     levymc.sgfla(model.grad_estimator(50), 1e-3, 1.7), model.latents
        ... )
        >>> run = levymc.sample(
        ...     algorithm,
        ...     jax.random.key(2),
        ...     jax.tree.map(lambda leaf: leaf[None], position),
        ...     20,
        ...     minibatches=levymc.batches({"images": images}, 10),
        ...     progress=False,
        ... )
        >>> run.positions["weights"].shape
        (1, 20, 16, 4)

    References: [simsekli2017], section 5.3; [gan2015] for the model.  Departures: the paper leaves
        the priors to the code that it took over; these are that code's as best reconstructed.
    """
    check_positive("prior_scale", prior_scale, "It is the standard deviation of a weight.")
    if method not in METHODS:
        choices = " or ".join(map(repr, METHODS))
        raise ValueError(f"`method` must be {choices}, got {method!r}. 'collapsed' mixes faster.")
    threads = check_count("num_threads", num_threads, "1 is no threads but the caller's.")
    return _model(
        check_count("num_visible", num_visible, "It is the number of pixels."),
        check_count("num_hidden", num_hidden, "It is the number of hidden units."),
        float(prior_scale),
        check_count("sweeps", sweeps, "It is the number of times that each unit is drawn."),
        method,
        sweeper(backend, threads),
    )


# One object for equal models, and one function for each of their data sizes: methods and functions
# compare by identity, and a program that was compiled with one is to be found again.
_model = lru_cache(maxsize=64)(BeliefNetwork)


@lru_cache(maxsize=64)
def _gradient(model: BeliefNetwork, data_size: int) -> Estimate:
    r"""(N/|Ω|) Σ (v - σ(a)) hᵀ - W/s², and likewise for the biases."""

    def estimate(position: Position, minibatch: Minibatch) -> Position:
        weights = position["weights"]
        images = _binary(jnp.asarray(minibatch["images"], weights.dtype))
        hidden = jnp.asarray(minibatch["hidden"], weights.dtype)
        scale = jnp.asarray(data_size / len(images), weights.dtype)
        # Written out, not by jax.grad, which would keep the activations and go through them again.
        residuals = images - model.means(position, hidden)
        surprise = jnp.sum(hidden - jax.nn.sigmoid(position["hidden_bias"]), axis=0)
        likelihood = {
            "weights": residuals.T @ hidden,
            "hidden_bias": surprise,
            "visible_bias": jnp.sum(residuals, axis=0),
        }
        variance = model.prior_scale**2
        return {name: scale * likelihood[name] - position[name] / variance for name in position}

    return estimate


def check_binary(name: str, values: Any) -> None:
    """Refuse what is neither 0 nor 1."""
    if is_traced(values):
        return
    array = np.asarray(values)
    wrong = (array != 0) & (array != 1)
    if np.any(wrong):
        raise ValueError(
            f"`{name}` must be 0 or 1, got {array[wrong][0]!s}. Cut grey values off at a "
            "threshold, or draw pixels with them as probabilities."
        )


def _binary(pixels: Array) -> Array:
    """NaN in the place of grey values, which have no probability."""
    return jnp.where((pixels == 0) | (pixels == 1), pixels, jnp.nan)


def activations(position: Position, hidden: ArrayLike) -> Array:
    """W h + c."""
    weights = position["weights"]
    return jnp.asarray(hidden, weights.dtype) @ weights.T + position["visible_bias"]


def bernoulli_logpmf(logits: Array, values: ArrayLike) -> Array:
    """Σ v a - ζ(a) along the last axis."""
    return jnp.sum(jnp.asarray(values, logits.dtype) * logits - jax.nn.softplus(logits), axis=-1)


def prior_draw(key: Array, position: Position, count: int) -> UInt8[Array, "image unit"]:
    """Hidden units of some images."""
    rates = jax.nn.sigmoid(position["hidden_bias"])
    return jax.random.bernoulli(key, rates, (count, len(rates))).astype(jnp.uint8)


def _log_sum(position: Position, pixels: Array, hidden: Array) -> Array:
    """log Σ p(v, h) over some states."""
    logits = activations(position, hidden)
    prior = bernoulli_logpmf(position["hidden_bias"], hidden)
    constant = prior - jnp.sum(jax.nn.softplus(logits), axis=1)
    return jax.nn.logsumexp(pixels @ logits.T + constant, axis=1)
