r"""The hidden units of a belief network, drawn with Pólya–Gamma variables, and these variables.

The law PG(1, z) is that of a quarter of the time in which a Brownian motion of drift z/2 leaves
[-1, 1].  With ζ = |z|/2, that time has the density

.. math:: f(x) = \cosh(ζ)\, e^{-ζ^2x/2} \sum_{n ≥ 0} (-1)^n a_n(x),

with a_n(x) = π(n + 1/2) (2/πx)^{3/2} exp(-2(n + 1/2)²/x) or, the same sum by Poisson's formula,
a_n(x) = π(n + 1/2) exp(-(n + 1/2)²π²x/2).  Both series alternate and fall, so that their first
term bounds the density: the former is used up to a point t, where the first term is tilted to an
inverse Gaussian law, the latter beyond it, where it is exponential.
"""

import math
from collections.abc import Mapping
from statistics import NormalDist

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

# Devroye's t = 0.64 needs an inverse Gaussian law cut off at t, hence a rejection within another.
# Here small tilts propose an inverse chi-square, cut off, and large tilts the whole inverse
# Gaussian, and what they have in excess is rejected with the rest of the series.  Where to change
# over and the two t were chosen for the worst rate of acceptance: 0.934, at the change; from there
# it rises to 0.974 at no tilt and to 1 at large ones.
CHANGE = 1.38  # of ζ
SMALL_TILT_END = 0.25
LARGE_TILT_END = 2.5
SMALL_TILT_TAIL = NormalDist().cdf(-1 / math.sqrt(SMALL_TILT_END))

# The share of draws that gets a place in the passes after the first, which typically leaves one in
# 50 open; where it leaves more, they take turns.
SHARE = 1 / 24
FEWEST = 256  # below this a pass costs no less for being shorter


def sweep_polya_gamma(
    key: Array,
    position: Mapping[str, Array],
    images: Num[Array, "image visible"],
    hidden: Num[Array, "image unit"],
) -> Num[Array, "image unit"]:
    r"""One sweep of Gibbs sampling of the hidden units h, given the visible ones v.

    With a = Wh + c, a visible unit has the probability

    .. math:: \frac{e^{va}}{1 + e^a} = \frac12 e^{(v - 1/2)a}\, E_{ω ∼ PG(1, 0)} e^{-ωa^2/2},

    so that jointly with ω the logarithm is quadratic in h.  First ω_d ~ PG(1, a_d) for all visible
    units, then the hidden ones in turn, the log-odds of unit j being

    .. math:: b_j + \sum_d W_{dj} (v_d - \tfrac12) - \sum_d ω_d W_{dj} (a_d - W_{dj} h_j)
       - \tfrac12 \sum_d ω_d W_{dj}^2,

    a_d - W_dj h_j being a_d without the unit.

    Targets: p(h | v), which it leaves invariant, for each image on its own.

    Cheap, but slow to mix: ω remembers the units that it was drawn for.  With 100 units trained on
    MNIST a sweep flips 0.4 units per image where one with ω summed out flips 4.5.  From the prior,
    log p(v, h) comes within 1 of its mean in 50 sweeps of the latter, and not in 1000 of this one.

    Args:
        key: a JAX random key.
        position: "weights" W (visible, unit), "hidden_bias" b (unit,) and "visible_bias" c
            (visible,).
        images: v, of 0 and 1.
        hidden: h, of 0 and 1.

    Returns:
        The new hidden units, with the dtype of `hidden`.

    References: [polson2013]; [gan2015], section 3.1, for belief networks.
    """
    key_omega, key_units = jax.random.split(key)
    units = position["weights"].T  # a row for each unit, which the loop reads in turn
    dtype = units.dtype
    states = hidden.T.astype(dtype)
    activation = states.T @ units + position["visible_bias"]
    omega = polya_gamma(key_omega, activation)
    noise = jax.random.logistic(key_units, states.shape, dtype)
    linear = units @ (images.astype(dtype) - 0.5).T + position["hidden_bias"][:, None]
    curvature = units**2 @ omega.T

    def draw_unit(j: Array, loop: tuple[Array, Array]) -> tuple[Array, Array]:
        states, weighted = loop  # h, and ω a
        old = states[j]
        logodds = linear[j] - weighted @ units[j] + (old - 0.5) * curvature[j]
        new = (noise[j] < logodds).astype(dtype)
        weighted = weighted + (new - old)[:, None] * (omega * units[j])
        return states.at[j].set(new), weighted

    states, _ = jax.lax.fori_loop(0, len(units), draw_unit, (states, omega * activation))
    return states.T.astype(hidden.dtype)


@jax.jit
def polya_gamma(key: Array, tilt: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Draw from PG(1, z) for each tilt z, the law with

    .. math:: E e^{-sω} = \cosh(z/2) / \cosh\sqrt{(z^2/2 + s)/2}.

    Exact up to rounding: the series is cut where the first term left out, and with it the error of
    a probability, is below 1e-18.  Signs of z do not matter.  A NaN gives NaN, an infinity 0.

    Args:
        key: a JAX random key.
        tilt: any shape, float32 or float64.

    Returns:
        One draw for each tilt, of its shape and dtype.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> from levymc.models.sbn._polya_gamma import polya_gamma
        >>> polya_gamma(jax.random.key(0), jnp.array([0.0, -3.0, 1e4])).shape
        (3,)

    References: [polson2013], section 4.  Departures: other proposals, and one test of acceptance
    with the whole series instead of Devroye's partial sums, for many draws at a time.
    """
    times = _exit_times(key, jnp.abs(tilt).ravel() / 2, SHARE)
    return times.reshape(tilt.shape) / 4


def _exit_times(key: Array, drift: Float[Array, " lane"], share: float) -> Float[Array, " lane"]:
    """Propose for all, then for those rejected, gathered into an array about as short as they."""
    if len(drift) <= FEWEST:
        return _repeat(key, drift)
    places = jnp.arange(1, math.ceil(len(drift) * share) + 1)
    key, key_first = jax.random.split(key)

    def redraw(loop: tuple[Array, Array]) -> tuple[Array, Array]:
        key, times = loop
        key, key_redraw = jax.random.split(key)
        rank = jnp.cumsum(times < 0, dtype=places.dtype)
        # Places that are left over point behind the last lane, where nothing is written.
        lanes = jnp.searchsorted(rank, places)
        redrawn = _repeat(key_redraw, drift.at[lanes].get(mode="fill", fill_value=0.0))
        return key, times.at[lanes].set(redrawn, mode="drop")

    return jax.lax.while_loop(_is_open, redraw, (key, _propose(key_first, drift)))[1]


def _repeat(key: Array, drift: Float[Array, " lane"]) -> Float[Array, " lane"]:
    """Propose for all until each had one accepted."""

    def propose(loop: tuple[Array, Array]) -> tuple[Array, Array]:
        key, times = loop
        key, key_propose = jax.random.split(key)
        return key, jnp.where(times < 0, _propose(key_propose, drift), times)

    return jax.lax.while_loop(_is_open, propose, (key, jnp.full_like(drift, -1.0)))[1]


def _is_open(loop: tuple[Array, Array]) -> Array:
    return jnp.any(loop[1] < 0)


def _propose(key: Array, drift: Float[Array, " lane"]) -> Float[Array, " lane"]:
    """One candidate for each drift, of a density that bounds that of the exit time up to a factor.

    Those rejected are negative, so that one array says both.
    """
    main, coin = _uniforms(key, drift)
    is_small = drift < CHANGE
    end = jnp.where(is_small, SMALL_TILT_END, LARGE_TILT_END).astype(drift.dtype)

    # Masses before and beyond the end, both without cosh(ζ), which would overflow; for large tilts
    # both times exp(ζ)/2, as they would underflow.
    rate = np.pi**2 / 8 + drift**2 / 2
    mass_before = jnp.where(is_small, 4 * SMALL_TILT_TAIL, 1.0)
    scale_log = jnp.where(is_small, 0.0, drift - np.log(2))
    mass_beyond = np.pi / (2 * rate) * jnp.exp(scale_log - rate * end)
    is_beyond, coin = _toss(coin, mass_beyond / (mass_before + mass_beyond))

    normal = -jax.scipy.special.ndtri(main * jnp.where(is_small, SMALL_TILT_TAIL, 0.5))
    gaussian_time, coin_left = _inverse_gaussian(drift, normal**2, coin)
    before = jnp.where(is_small, 1 / normal**2, gaussian_time)
    times = jnp.where(is_beyond, end - jnp.log(main) / rate, before)
    coin = jnp.where(is_small | is_beyond, coin, coin_left)

    series = _series(jnp.exp(jnp.where(is_beyond, -(np.pi**2) * times, -4 / times)))
    tilted = jnp.where(is_small & ~is_beyond, jnp.exp(-(drift**2) / 2 * times), 1.0)
    is_outside = ~is_small & ~is_beyond & (times > end)
    # NaN compares false: it is let through, where asking for acceptance would go on for ever.
    return jnp.where((coin >= series * tilted) | is_outside, -times, times)


def _inverse_gaussian(drift: Array, chi_square: Array, coin: Array) -> tuple[Array, Array]:
    """IG(1/ζ, 1) by choosing between two roots [michael1976], and what is left of the coin."""
    mean = 1 / jnp.maximum(drift, CHANGE)  # smaller drifts are not asked for
    half = mean * chi_square / 2
    ratio = 1 + half + jnp.sqrt(half * (half + 2))
    is_smaller, coin = _toss(coin, ratio / (1 + ratio))
    return jnp.where(is_smaller, mean / ratio, mean * ratio), coin


def _toss(coin: Array, chance: Array) -> tuple[Array, Array]:
    """Whether a uniform is below the chance; given that, a uniform again, of fewer random bits.

    Random words are a quarter of the time of a draw.  The bits that are lost shift no probability
    by more than the rounding of one uniform.
    """
    is_below = coin < chance
    return is_below, jnp.where(is_below, coin / chance, (coin - chance) / (1 - chance))


def _series(q: Array) -> Array:
    """Σ (-1)^n (2n + 1) q^(n(n+1)/2), the density over its first term; q is at most exp(-4/2.5)."""
    q2 = q * q
    q3 = q2 * q
    q6 = q3 * q3
    q10 = q6 * q2 * q2
    q15 = q10 * q3 * q2
    return 1 - 3 * q + 5 * q3 - 7 * q6 + 9 * q10 - 11 * q15 + 13 * q15 * q6


def _uniforms(key: Array, like: Float[Array, " lane"]) -> tuple[Array, Array]:
    """Two uniforms on (0, 1] per lane, fine as 2^-32 (2^-64) near zero, where tails come from."""
    width = 64 if like.dtype == jnp.float64 else 32
    words = jax.random.bits(key, (2, len(like)), f"uint{width}")
    main, coin = (words.astype(like.dtype) + 0.5) * like.dtype.type(2.0**-width)
    return main, coin
