"""How the table of the law is cut: bands of α, and panels of |x| with a local coordinate each.

The first panel is [0, 2^-8] in the coordinate x², as the law is even; then panels of a third of
an octave in log₂ x; the last reaches from 2^4 to infinity in the coordinate x^{-α}, in which the
tail is a power series.  The bands of α are thirds of an octave, too: the law's nearest singularity
is at α = 0.
"""

import numpy as np

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
