r"""Sigmoid belief networks with one hidden layer."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from levymc._checks import check_count, check_key, check_positive, check_real

from ._sbn_exact import exact_loglikelihood
from ._sbn_gibbs import Sweeper, sweeper
from ._sbn_polya_gamma import sweep as sweep_polya_gamma

Position = dict[str, Array]
METHODS = ("collapsed", "polya-gamma")


class BeliefNetwork(NamedTuple):
    """The functions of a model; see `sbn`."""

    init: Callable[..., Position]
    logprior: Callable[[Position], Array]
    logjoint: Callable[[Position, Any, Any], Array]
    grad_estimator: Callable[[int], Callable[[Position, Any], Position]]
    gibbs: Callable[..., Array]
    latents: Callable[..., tuple[Any, Any]]
    memory: Callable[[int], Array]
    means: Callable[[Position, Any], Array]
    simulate: Callable[..., tuple[Array, Array]]
    exact_loglikelihood: Callable[[Position, Any], Array]
    sweeps: Sweeper


class _Model(NamedTuple):
    num_visible: int
    num_hidden: int
    prior_scale: float
    num_sweeps: int
    method: str
    sweeps: Sweeper


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
    and hidden units (N, J), of 0 and 1 in any dtype; units that are drawn are uint8.

    - `init(key, scale=0.1, visible_bias=None, dtype=None)`: W of N(0, scale²), b = 0, and c = 0 or
      as given, such as the logits of `levymc.models.pixel_rates(images)`.
    - `logprior(position)`, up to a constant; `logjoint(position, images, hidden)`: log p(v, h) of
      each image.
    - `grad_estimator(data_size)`: the function of (position, minibatch) for `levymc.sgfla`, of
      minibatches {"images": ..., "hidden": ...}, unbiased where the hidden units are exact draws.
    - `gibbs(key, position, images, hidden, sweeps=None)`: draws of h | v, each unit `sweeps` times.
    - `latents(key, position, minibatch, memory)`: completes a minibatch {"images": ...}, for
      `levymc.augmented`.  Without a memory, sweeps begin from a draw of the prior.  With
      `memory(num_images)` they begin where they ended when the image was last seen; the minibatch
      must then have "index", too, the images' places among all.
    - `means(position, hidden)`: the probability of each pixel.
    - `simulate(key, position, count)`: images and hidden units.
    - `exact_loglikelihood(position, images)`: log p(v) by adding up 2^J terms, J ≤ 20; for more
      units `levymc.models.annealed_loglikelihood` estimates it.

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
    model = _Model(
        check_count("num_visible", num_visible, "It is the number of pixels."),
        check_count("num_hidden", num_hidden, "It is the number of hidden units."),
        float(prior_scale),
        check_count("sweeps", sweeps, "It is the number of times that each unit is drawn."),
        method,
        sweeper(backend, threads),
    )
    return BeliefNetwork(
        lambda key, scale=0.1, visible_bias=None, dtype=None: _init(
            model, key, scale, visible_bias, dtype
        ),
        lambda position: _logprior(model, position),
        logjoint,
        lambda data_size: _grad_estimator(model, data_size),
        lambda key, position, images, hidden, sweeps=None: _gibbs(
            model, key, position, images, hidden, sweeps
        ),
        lambda key, position, minibatch, memory=None: _latents(
            model, key, position, minibatch, memory
        ),
        lambda num_images: jnp.zeros((num_images, model.num_hidden), jnp.uint8),
        means,
        simulate,
        exact_loglikelihood,
        model.sweeps,
    )


def _init(model: _Model, key: Any, scale: Any, visible_bias: Any, dtype: Any) -> Position:
    check_positive("scale", scale, "At zero all hidden units are alike, and stay so.")
    kind = jnp.dtype(dtype or float)
    shape = (model.num_visible, model.num_hidden)
    bias = jnp.zeros(model.num_visible) if visible_bias is None else visible_bias
    check_real("visible_bias", bias, "The logit of a pixel that is always 0 is not: smooth rates.")
    return {
        "weights": jnp.asarray(scale, kind) * jax.random.normal(check_key(key), shape, kind),
        "hidden_bias": jnp.zeros(model.num_hidden, kind),
        "visible_bias": jnp.broadcast_to(jnp.asarray(bias, kind), (model.num_visible,)),
    }


def _logprior(model: _Model, position: Position) -> Array:
    squares = [jnp.sum(leaf**2) for leaf in jax.tree.leaves(position)]
    return -jnp.sum(jnp.stack(squares)) / (2 * model.prior_scale**2)


def activations(position: Position, hidden: Any) -> Array:
    """W h + c."""
    weights = position["weights"]
    return jnp.asarray(hidden, weights.dtype) @ weights.T + position["visible_bias"]


def means(position: Position, hidden: Any) -> Array:
    return jax.nn.sigmoid(activations(position, hidden))


def bernoulli_logpmf(logits: Array, values: Any) -> Array:
    """Σ v a - ζ(a) along the last axis."""
    return jnp.sum(jnp.asarray(values, logits.dtype) * logits - jax.nn.softplus(logits), axis=-1)


def logjoint(position: Position, images: Any, hidden: Any) -> Array:
    return bernoulli_logpmf(activations(position, hidden), images) + bernoulli_logpmf(
        position["hidden_bias"], hidden
    )


def simulate(key: Any, position: Position, count: Any) -> tuple[Array, Array]:
    number = check_count("count", count, "It is the number of images.")
    key_hidden, key_images = jax.random.split(check_key(key))
    rates = jax.nn.sigmoid(position["hidden_bias"])
    hidden = jax.random.bernoulli(key_hidden, rates, (number, len(rates)))
    images = jax.random.bernoulli(key_images, means(position, hidden))
    return images.astype(jnp.uint8), hidden.astype(jnp.uint8)


def _grad_estimator(model: _Model, data_size: Any) -> Callable[[Position, Any], Position]:
    r"""(N/|Ω|) Σ (v - σ(a)) hᵀ - W/s², and likewise for the biases."""
    size = check_count("data_size", data_size, "It is the number of images N.")

    def estimate(position: Position, minibatch: Any) -> Position:
        weights = position["weights"]
        images = jnp.asarray(minibatch["images"], weights.dtype)
        hidden = jnp.asarray(minibatch["hidden"], weights.dtype)
        scale = jnp.asarray(size / len(images), weights.dtype)
        # Written out, not by jax.grad, which would keep the activations and go through them again.
        residuals = images - means(position, hidden)
        surprise = jnp.sum(hidden - jax.nn.sigmoid(position["hidden_bias"]), axis=0)
        likelihood = {
            "weights": residuals.T @ hidden,
            "hidden_bias": surprise,
            "visible_bias": jnp.sum(residuals, axis=0),
        }
        return {
            name: scale * likelihood[name] - position[name] / model.prior_scale**2
            for name in position
        }

    return estimate


def drive_of(position: Position, images: Any) -> Array:
    """V W + b: what the log-odds of a unit owe to the image alone."""
    weights = position["weights"]
    return jnp.asarray(images, weights.dtype) @ weights + position["hidden_bias"]


def _gibbs(
    model: _Model, key: Any, position: Position, images: Any, hidden: Any, sweeps: Any
) -> Array:
    count = model.num_sweeps if sweeps is None else check_count("sweeps", sweeps, "At least one.")
    units = jnp.asarray(hidden).astype(jnp.uint8)
    if model.method == "polya-gamma":
        pixels = jnp.asarray(images, position["weights"].dtype)
        one = lambda h, k: (sweep_polya_gamma(k, position, pixels, h), None)  # noqa: E731
        return jax.lax.scan(one, units, jax.random.split(key, count))[0]
    words = jax.random.bits(key, (2,), jnp.uint32)
    drive = drive_of(position, images)
    return model.sweeps(
        position["weights"], position["visible_bias"], drive, units, words, num_sweeps=count
    ).hidden


def _latents(
    model: _Model, key: Array, position: Position, minibatch: Any, memory: Any
) -> tuple[Any, Any]:
    key_start, key_sweeps = jax.random.split(key)
    images = minibatch["images"]
    if memory is None:
        rates = jax.nn.sigmoid(position["hidden_bias"])
        start = jax.random.bernoulli(key_start, rates, (len(images), model.num_hidden))
    else:
        start = memory[minibatch["index"]]
    hidden = _gibbs(model, key_sweeps, position, images, start, None)
    kept = None if memory is None else memory.at[minibatch["index"]].set(hidden)
    return {**minibatch, "hidden": hidden}, kept
