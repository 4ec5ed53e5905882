r"""The directions along which components are independent, where their tails are heavy."""

import numpy as np

ITERATIONS = 50  # about 20 are enough
TOLERANCE = 1e-3  # of the largest number; with less the axes are no nearer to the true ones


def unmixing(whitened: np.ndarray, share: float) -> np.ndarray:
    r"""The W of highest likelihood, if the coordinates of W z are independent Cauchy laws,

    .. math:: \log |\det W| - \sum_i E \log\bigl(1 + (w_i^T z)^2\bigr).

    Whatever the heavy tails really are, it finds the same directions: a draw far out is so by one
    component alone, and points along its axis.  The further out, the more it tells: of Cauchy laws
    n draws leave an error of 1/n, not 1/√n.

    Each row in turn maximises a lower bound that is quadratic in it, so that there is no step to
    choose, and the likelihood never falls.

    whitened: the rows are draws, with a scatter like the identity.  share: how far they are
    trusted, beside a scatter that is the identity.

    References: [ono2011], the iterative projection.
    Departures: the Cauchy law as the contrast, and real numbers.
    """
    size = whitened.shape[1]
    found, unit = np.eye(size), np.eye(size)
    for _ in range(ITERATIONS):
        before = found.copy()
        for axis in range(size):
            weights = 2 / (1 + (whitened @ found[axis]) ** 2)
            scatter = share * (whitened.T * weights) @ whitened / len(whitened)
            scatter += (1 - share) * unit
            row = np.linalg.solve(found @ scatter, unit[axis])
            found[axis] = row / np.sqrt(row @ scatter @ row)
        if np.max(np.abs(found - before)) < TOLERANCE * np.max(np.abs(found)):
            break
    return found
