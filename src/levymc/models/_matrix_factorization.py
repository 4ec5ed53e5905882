r"""Bayesian matrix factorisation, in pure JAX."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from levymc._checks import check_count, check_key, check_positive, check_real

Position = dict[str, Array]
Ratings = Any  # (users, items, values), three arrays of one length


class MatrixFactorization(NamedTuple):
    """The functions of a model; see `matrix_factorization`."""

    init: Callable[..., Position]
    logdensity: Callable[[Position, Ratings], Array]
    grad_estimator: Callable[[int], Callable[[Position, Ratings], Position]]
    predict: Callable[[Position, Any, Any], Array]
    row_curvature: Callable[[int], Callable[[Position, Ratings], Position]]
    row_preconditioner: Callable[..., dict[str, np.ndarray]]


class _Model(NamedTuple):
    num_users: int
    num_items: int
    rank: int
    center: float
    has_biases: bool
    precision: float


def matrix_factorization(
    num_users: Any,
    num_items: Any,
    *,
    rank: Any = 10,
    center: float = 0.0,
    biases: bool = False,
    noise_precision: float = 1.0,
) -> MatrixFactorization:
    r"""Ratings Y of items by users as a product of two thin matrices,

    .. math:: A_{ul}, B_{il} \sim N(0, 1), \qquad
       Y_{ui} \sim N\bigl(μ + a_u + b_i + A_u · B_i,\; 1/τ\bigr) \text{ where observed},

    with L columns each, and biases a_u, b_i ~ N(0, 1) only if asked for.

    Positions are {"users": (U, L), "items": (I, L)}, and with biases "user_biases": (U,),
    "item_biases": (I,).  Ratings are (users, items, values), arrays of one length.  Columns that
    are zero in both matrices are harmless: rows may be padded.

    - `init(key, scale=0.1, dtype=None)`: a position with entries N(0, scale²).
    - `logdensity(position, ratings)`: the log-joint, up to a constant.
    - `grad_estimator(data_size)`: the function of (position, minibatch) that estimates its
      gradient, unbiased for minibatches drawn uniformly, with replacement or without.
    - `predict(position, users, items)`: the mean of these ratings.
    - `row_curvature(data_size)`: the function of (position, minibatch) that estimates, for each
      row, S = 1 + τ Σ |partner|² over its ratings, which bounds the eigenvalues of -∂² log φ in
      the row; of shape (U, 1) and (I, 1), for `levymc.sgfla(curvature=...)`.  A bias counts as
      one more column, whose partner is 1.
    - `row_preconditioner(users, items, s2=0.25, c=100.0)`: 1/(1 + τ s²(d + c)) for each row, d the
      number of its ratings: about the inverse of a row's curvature if its partners' entries have
      mean square s², with c in place of ratings for rows that have few.

    Args:
        num_users, num_items: U and I.
        rank: L.
        center: μ, such as the mean of the ratings for training.
        biases: give each user and item a bias.
        noise_precision: τ > 0.

    Raises:
        ValueError, TypeError: an argument outside its range.

    Examples:
        >>> import jax, jax.numpy as jnp, levymc
        >>> model = levymc.models.matrix_factorization(3, 4, rank=2)
        >>> position = model.init(jax.random.key(0))
        >>> model.predict(position, jnp.array([0, 2]), jnp.array([1, 3])).shape
        (2,)

    References: [simsekli2017], section 5.2.  Departures: centring, biases, τ.
    """
    check_real("center", center, "It is added to every prediction.")
    check_positive("noise_precision", noise_precision, "It is 1/variance of a rating's noise.")
    model = _Model(
        check_count("num_users", num_users, "It is the number of rows of A."),
        check_count("num_items", num_items, "It is the number of rows of B."),
        check_count("rank", rank, "It is the number of columns of A and B."),
        float(center),
        bool(biases),
        float(noise_precision),
    )
    return MatrixFactorization(
        lambda key, scale=0.1, dtype=None: _init(model, key, scale, dtype),
        lambda position, ratings: _logdensity(model, position, ratings),
        lambda data_size: _grad_estimator(model, data_size),
        lambda position, users, items: _predict(model, position, users, items),
        lambda data_size: _row_curvature(model, data_size),
        lambda users, items, s2=0.25, c=100.0: _row_preconditioner(model, users, items, s2, c),
    )


def _init(model: _Model, key: Any, scale: Any, dtype: Any) -> Position:
    check_positive("scale", scale, "At zero the gradient in both factors vanishes.")
    shapes: dict[str, tuple[int, ...]] = {
        "users": (model.num_users, model.rank),
        "items": (model.num_items, model.rank),
    }
    if model.has_biases:
        shapes |= {"user_biases": (model.num_users,), "item_biases": (model.num_items,)}
    keys = jax.random.split(check_key(key), len(shapes))
    return {
        name: jnp.asarray(scale, dtype or float) * jax.random.normal(k, shape, dtype or float)
        for k, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def _predict(model: _Model, position: Position, users: Any, items: Any) -> Float[Array, "..."]:
    products = jnp.sum(position["users"][users] * position["items"][items], axis=-1)
    mean = products + jnp.asarray(model.center, products.dtype)
    if model.has_biases:
        mean = mean + position["user_biases"][users] + position["item_biases"][items]
    return mean


def _residuals(model: _Model, position: Position, ratings: Ratings) -> Array:
    users, items, values = ratings
    mean = _predict(model, position, users, items)
    return jnp.asarray(values, mean.dtype) - mean


def _logdensity(model: _Model, position: Position, ratings: Ratings) -> Float[Array, ""]:
    prior = sum(jnp.sum(leaf**2) for leaf in position.values())
    return -(prior + model.precision * jnp.sum(_residuals(model, position, ratings) ** 2)) / 2


def _grad_estimator(model: _Model, data_size: Any) -> Callable[[Position, Ratings], Position]:
    r"""-A_u + τ (N/|Ω|) Σ r B_i over the user's ratings in Ω, likewise for items and biases."""
    size = check_count("data_size", data_size, "It is the number of ratings N.")

    def estimate(position: Position, minibatch: Ratings) -> Position:
        users, items, values = minibatch
        weight = model.precision * size / values.shape[0]
        pull = weight * _residuals(model, position, minibatch)
        # Written out, not by jax.grad: the rows of both factors are looked up once.
        rows = {"users": users, "items": items}
        partners = {"users": position["items"][items], "items": position["users"][users]}
        terms = {name: pull[:, None] * partner for name, partner in partners.items()}
        if model.has_biases:
            rows |= {"user_biases": users, "item_biases": items}
            terms |= {"user_biases": pull, "item_biases": pull}
        return {name: (-position[name]).at[rows[name]].add(terms[name]) for name in position}

    return estimate


def _row_curvature(model: _Model, data_size: Any) -> Callable[[Position, Ratings], Position]:
    size = check_count("data_size", data_size, "It is the number of ratings N.")

    def estimate(position: Position, minibatch: Ratings) -> Position:
        users, items, values = minibatch
        weight = model.precision * size / values.shape[0]
        squares = {name: jnp.sum(position[name] ** 2, axis=-1) for name in ("users", "items")}
        extra = 1 if model.has_biases else 0
        of_user = 1 + _summed(weight * (squares["items"][items] + extra), users, model.num_users)
        of_item = 1 + _summed(weight * (squares["users"][users] + extra), items, model.num_items)
        return _by_row(model, of_user, of_item)

    return estimate


def _summed(terms: Array, rows: Any, num_rows: int) -> Array:
    return jnp.zeros(num_rows, terms.dtype).at[rows].add(terms)


def _row_preconditioner(
    model: _Model, users: Any, items: Any, s2: Any, c: Any
) -> dict[str, np.ndarray]:
    check_positive("s2", s2, "It is about the mean square of a factor's entries.")
    check_positive("c", c, "It stands for ratings of rows that have few.")

    def steps(rows: Any, num_rows: int) -> np.ndarray:
        counts = np.bincount(np.asarray(rows), minlength=num_rows)
        return 1 / (1 + model.precision * s2 * (counts + c))

    return _by_row(model, steps(users, model.num_users), steps(items, model.num_items))


def _by_row(model: _Model, of_user: Any, of_item: Any) -> dict[str, Any]:
    """A number a row as a pytree that broadcasts to the position."""
    tree = {"users": of_user[:, None], "items": of_item[:, None]}
    if model.has_biases:
        tree |= {"user_biases": of_user, "item_biases": of_item}
    return tree
