r"""How large the steps of an unadjusted chain are, beside its noise and the width of its target.

On a normal target of variance σ² along a coordinate Euler's chain is autoregressive,

.. math:: X' = (1 - h) X + \sqrt{2η}\, ξ, \qquad h = η/σ^2, \qquad
   \mathrm{Var}\, X = \frac{σ^2}{1 - h/2} :

the draws are too wide by h/2, and for h ≥ 2 the chain explodes.  Successive increments have the
correlation -h/2 whatever the target's place and scale, and however far its modes lie apart.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ._trend import normal_scores

NORMAL_SQUARE = NormalDist().inv_cdf(0.75) ** 2  # median of ξ², ξ standard normal
AGREEMENT = 0.1  # between the noise seen and that expected of a step size without preconditioner


class Pull(NamedTuple):
    """The share h of the way to the middle that a step makes, in the direction where most.

    error: how large it may seem by chance alone, where it is nothing.
    """

    share: float
    error: float


def strongest_pull(values: Float[np.ndarray, "coordinate chain draw"]) -> Pull | None:
    """From the correlation of successive increments, by their normal scores.

    The least eigenvalue of the symmetrised correlations between coordinates, so that a direction
    in which a correlated target is narrow is found, too.  None where nothing moves.
    """
    increments = np.diff(values, axis=2)
    moving = increments[np.ptp(increments, axis=(1, 2)) > 0]
    count = len(moving)
    if not count or increments.shape[2] < 2:
        return None
    scores = np.stack([normal_scores(one) for one in moving])
    before, after = (part.reshape(count, -1) for part in (scores[..., :-1], scores[..., 1:]))
    num_pairs = before.shape[1]
    covariance = scores.reshape(count, -1) @ scores.reshape(count, -1).T / scores[0].size
    crossed = before @ after.T / num_pairs
    ridge = 1e-6 * np.trace(covariance) / count * np.eye(count)  # for coordinates that are copies
    whiten = np.linalg.inv(np.linalg.cholesky(covariance + ridge))
    least = np.linalg.eigvalsh(whiten @ (crossed + crossed.T) @ whiten.T / 2)[0]
    # Wigner's semicircle for independent increments, and three standard errors for few coordinates.
    chance = math.sqrt(2 * count / num_pairs) + 3 / math.sqrt(num_pairs)
    return Pull(float(-2 * least), 2 * chance)


def gaussian_noise(
    step_sizes: Float[np.ndarray, "chain draw"],
    largest: Float[np.ndarray, "chain draw"],
    num_normals: int,
) -> Float[np.ndarray, "chain draw"] | None:
    """Variance 2η of each coordinate's noise, if the largest of so many normals agrees with it.

    It does not with a preconditioner: then it is not known.
    """
    variance = 2 * np.asarray(step_sizes, np.float64)
    if np.any(variance <= 0):
        return None
    expected = -NormalDist().inv_cdf(-math.expm1(math.log(0.5) / num_normals) / 2)
    seen = float(np.median(np.asarray(largest, np.float64) / np.sqrt(variance)))
    return variance if abs(seen / expected - 1) < AGREEMENT else None


def over_noise(
    values: Float[np.ndarray, "chain draw"],
    variance: Float[np.ndarray, "chain draw"],
    thinning: int,
) -> float:
    """Typical square of the increments over that of their noise: 1 + the drift's and batches' part.

    A drift that leads back to the middle makes increments over several steps smaller.
    """
    squares = np.diff(values) ** 2 / (thinning * variance[:, 1:])
    return float(np.median(squares)) / NORMAL_SQUARE
