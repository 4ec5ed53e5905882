r"""The stationary law of FLA's diffusion, dX = c_α ∂log φ(X) dt + dL^α, without random numbers."""

from typing import Any

import numpy as np

from levymc.riesz import leading_coefficient

from .. import _double_well as well
from .._generator import stationary_density
from .._published import published

GRID = np.linspace(-20.0, 20.0, 1001)  # finer or wider changes the mean by less than 1e-5


def diffusion(alpha: float) -> dict[str, Any]:
    """Its mean, bias and distance from the target, beside the published bias."""
    x = GRID
    law = well.density(x)
    if alpha < 2:  # at 2 the drift is exact
        slope = -np.polynomial.Polynomial.fromroots([-5, -1, 1.02, 5]).deriv()(x) / 10
        law = stationary_density(float(leading_coefficient(alpha - 2)) * slope, x, alpha)
    mean = float((x * law).sum() * (x[1] - x[0]))
    paper = published("fig4_bias_vs_alpha").where(x=alpha)["y"]
    return {
        "alpha": alpha,
        "mean": mean,
        "bias": abs(mean - well.MEAN),
        "tv": np.abs(law - well.density(x)).sum() * (x[1] - x[0]) / 2,
        "published": paper[0] if paper.size else np.nan,
    }
