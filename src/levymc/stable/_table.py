r"""The table of the law, evaluated: what SαS(1) adds to the Gaussian.

With m = max(1, |x|), the table holds three functions that are smooth in α, up to α = 2, and in x,
up to infinity:

.. math::
   f(x) &= f_2(x) + (2-α)\, m^{-1-α}\, T_0(x, α) \\
   F(x) - 1/2 &= F_2(x) - 1/2 + (2-α)\, x\, m^{-1-α}\, T_1(x, α) \\
   -f'(x)/x &= f_2(x)/2 + (2-α)\, m^{-3-α}\, T_2(x, α)

where the index 2 marks N(0, 2).  Each T is a polynomial in α (one per band) times a polynomial in a
local coordinate of |x| (one per panel).  `tools/make_stable_table.py` computes it.

The first panel is [0, 2^-8] in the coordinate x², as the law is even; then panels of a third of
an octave in log₂ x; the last reaches from 2^4 to infinity in the coordinate x^{-α}, in which the
tail is a power series.  The bands of α are thirds of an octave, too: the law's nearest singularity
is at α = 0.

The functions take the array module `xp`, so that the same formulas serve traced JAX arrays and,
in NumPy, tables that must be made in float64 whatever JAX's precision is.
"""

from functools import cache
from importlib.resources import files
from types import ModuleType
from typing import Any

import numpy as np

DENSITY, CENTRAL, SLOPE = 0, 1, 2
ALPHA_EDGES = 2.0 ** (np.arange(-3, 4) / 3)
ALPHA_COUNT = 14
POSITION_COUNT = 13
LOG2_FIRST, LOG2_LAST = -8, 4
PANELS_PER_OCTAVE = 3
NUM_PANELS = (LOG2_LAST - LOG2_FIRST) * PANELS_PER_OCTAVE + 2


def positions(local: np.ndarray, alpha: float) -> np.ndarray:
    """The x of each panel whose local coordinates are `local` ∈ [-1, 1]: (panels, len(local))."""
    first = 2.0**LOG2_FIRST * np.sqrt((1 + local) / 2)
    starts = LOG2_FIRST + np.arange(NUM_PANELS - 2)[:, None] / PANELS_PER_OCTAVE
    octaves = 2.0 ** (starts + (1 + local) / (2 * PANELS_PER_OCTAVE))
    last = 2.0**LOG2_LAST * ((1 + local) / 2) ** (-1 / alpha)
    return np.vstack([first, octaves, last])


@cache
def _coefficients() -> np.ndarray:
    """Powers of α first, then of the local coordinate: (function, band, α, panel, x)."""
    with files(__package__).joinpath("_table.npz").open("rb") as stream, np.load(stream) as archive:
        return archive["coefficients"]


def evaluate(xp: ModuleType, function: int, x: Any, alpha: Any) -> Any:
    """T_function(|x|, α); `x` and `alpha` floating arrays of one dtype that broadcast."""
    table = xp.asarray(_coefficients()[function].astype(x.dtype))
    band, local_alpha = _place_alpha(xp, alpha)
    panel, local = _place_position(xp, abs(x), alpha)
    if alpha.ndim == 0:
        # One α: sum over its powers once, for all panels, before any x is looked at.
        rows = _horner(table[band], local_alpha)
        coefficients = [rows[:, power][panel] for power in range(rows.shape[-1])]
    else:
        band, panel, local_alpha, local = xp.broadcast_arrays(band, panel, local_alpha, local)
        powers = [table[band, power, panel] for power in range(table.shape[1])]
        rows = _horner(powers, local_alpha[..., None])
        coefficients = [rows[..., power] for power in range(rows.shape[-1])]
    return _horner(coefficients, local)


def _horner(coefficients: Any, variable: Any) -> Any:
    total = coefficients[-1]
    for power in range(len(coefficients) - 2, -1, -1):
        total = total * variable + coefficients[power]
    return total


def _place_alpha(xp: ModuleType, alpha: Any) -> tuple[Any, Any]:
    """The band of α and its coordinate in it, in [-1, 1]."""
    edges = xp.asarray(ALPHA_EDGES.astype(alpha.dtype))
    band = (alpha[..., None] >= edges[1:-1]).sum(axis=-1)
    low, high = edges[band], edges[band + 1]
    return band, (2 * alpha - (low + high)) / (high - low)


def _place_position(xp: ModuleType, size: Any, alpha: Any) -> tuple[Any, Any]:
    """The panel of |x| and its coordinate in it, in [-1, 1]."""
    first, last = 2.0**LOG2_FIRST, float(LOG2_LAST)
    # Below the first octave log₂ is not used; the bound keeps it finite, with finite derivatives.
    log2_size = xp.log2(xp.maximum(size, first / 2))
    octave = (log2_size - LOG2_FIRST) * PANELS_PER_OCTAVE
    start = xp.clip(xp.floor(octave), -1, NUM_PANELS - 2)
    local = 2 * (octave - start) - 1
    near = 2 * (xp.minimum(size, first) / first) ** 2 - 1
    far = 2 * xp.exp2(-alpha * (xp.maximum(log2_size, last) - last)) - 1
    local = xp.where(size < first, near, xp.where(log2_size >= last, far, local))
    panel = xp.where(size < first, -1.0, start).astype(int) + 1
    return panel, local
