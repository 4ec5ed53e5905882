r"""Gauss–Jacobi quadrature on [0, 1] with the weight of the Riesz kernel."""

from functools import lru_cache
from types import ModuleType
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from levymc._checks import check_alpha, check_count, is_traced


class Rule(NamedTuple):
    """Nodes in (0, 1), increasing along the last axis, and weights that sum to one there."""

    nodes: Any
    weights: Any


def gauss_jacobi(alpha: ArrayLike, num_nodes: Any, *, power: float = 1.0) -> Rule:
    r"""Return the n-point rule that is exact for polynomials F of degree 2n - 1 in

    .. math:: (p+1-α) \int_0^1 F(v)\, v^{p-α}\, dv = \sum_i w_i F(v_i), \qquad p = \text{power},

    by the eigenvalues of the Jacobi matrix.  As α → p + 1 the first node tends to zero and takes
    all the weight.  Computed in float64 unless α is traced.

    Args:
        alpha: in (1, 2]; may be traced, or an array, for a rule along the last axis for each.
        num_nodes: n ≥ 1.
        power: 1 for the drift's own kernel; 3 after a term in v² has been taken out.

    Raises:
        ValueError, TypeError: an argument outside its range.

    References: [golub1969].
    """
    check_alpha(alpha)
    count = check_count("num_nodes", num_nodes, "96 give eight digits on a double well.")
    return Rule(*(jnp.asarray(part) for part in unchecked_rule(alpha, count, power)))


def unchecked_rule(alpha: Any, count: int, power: float) -> Rule:
    """In JAX where α is traced; otherwise in NumPy, in float64 whatever JAX's precision is."""
    if is_traced(alpha):
        return _golub_welsch(jnp, power - jnp.asarray(alpha, float), count)
    if np.ndim(alpha) == 0:
        return _host_rule(float(alpha), count, power)
    return _golub_welsch(np, power - np.asarray(alpha, np.float64), count)


@lru_cache(maxsize=64)
def _host_rule(alpha: float, count: int, power: float) -> Rule:
    return _golub_welsch(np, np.asarray(power - alpha), count)


def _golub_welsch(xp: ModuleType, exponent: Any, count: int) -> Rule:
    """The rule for the weight v^exponent, exponent > -1, by the shifted Jacobi recurrence."""
    b = exponent[..., None]
    k = xp.arange(count, dtype=exponent.dtype)
    twice = 2 * k + b
    # The k = 0 entries by themselves, as b = 0 or -1 make the general ones 0/0.
    middle = (1 + b * b / _nonzero(xp, twice * (twice + 2))) / 2
    diagonal = xp.where(k == 0, (1 + b) / (2 + b), middle)
    j = k + 1
    twice = 2 * j + b
    square = (j * (j + b)) ** 2 / _nonzero(xp, twice**2 * (twice + 1) * (twice - 1))
    first = (1 + b) / ((2 + b) ** 2 * (3 + b))
    off_diagonal = xp.sqrt(xp.where(j == 1, first, square))
    upper = off_diagonal[..., None] * xp.eye(count, k=1, dtype=b.dtype)
    matrix = diagonal[..., None] * xp.eye(count, dtype=b.dtype) + upper + xp.swapaxes(upper, -1, -2)
    nodes, vectors = xp.linalg.eigh(matrix)
    return Rule(nodes, vectors[..., 0, :] ** 2)


def _nonzero(xp: ModuleType, value: Any) -> Any:
    return xp.where(value == 0, 1.0, value)
