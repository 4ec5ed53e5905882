r"""Bayesian matrix factorisation, in pure JAX."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from levymc._checks import check_count, check_key, check_positive, check_real

Position = dict[str, Array]
Ratings = Sequence[Array | np.ndarray]  # users, items and values, of one length
Estimate = Callable[[Position, Ratings], Position]

DATA_SIZE_REMEDY = "It is the number of ratings N."


@dataclass(frozen=True)
class MatrixFactorization:
    """The model that `matrix_factorization` describes.

    Models of equal fields are equal, and so are their functions.
    """

    num_users: int
    num_items: int
    rank: int
    center: float
    has_biases: bool
    precision: float

    def init(self, key: Any, scale: Any = 0.1, dtype: DTypeLike | None = None) -> Position:
        """A position with entries N(0, scale²)."""
        check_positive("scale", scale, "At zero the gradient in both factors vanishes.")
        shapes: dict[str, tuple[int, ...]] = {
            "users": (self.num_users, self.rank),
            "items": (self.num_items, self.rank),
        }
        if self.has_biases:
            shapes |= {"user_biases": (self.num_users,), "item_biases": (self.num_items,)}
        keys = jax.random.split(check_key(key), len(shapes))
        return {
            name: jnp.asarray(scale, dtype or float) * jax.random.normal(k, shape, dtype or float)
            for k, (name, shape) in zip(keys, shapes.items(), strict=True)
        }

    def predict(self, position: Position, users: Any, items: Any) -> Float[Array, "..."]:
        """The mean of these ratings."""
        of_users, of_items = _rows(position, "users", users), _rows(position, "items", items)
        products = jnp.sum(of_users * of_items, axis=-1)
        mean = products + jnp.asarray(self.center, products.dtype)
        if self.has_biases:
            mean = mean + _rows(position, "user_biases", users)
            mean = mean + _rows(position, "item_biases", items)
        return mean

    def logdensity(self, position: Position, ratings: Ratings) -> Float[Array, ""]:
        """The log-joint, up to a constant."""
        prior = sum(jnp.sum(leaf**2) for leaf in position.values())
        return -(prior + self.precision * jnp.sum(self._residuals(position, ratings) ** 2)) / 2

    def grad_estimator(self, data_size: Any) -> Estimate:
        """The function of (position, minibatch) that estimates the gradient of the log-joint.

        Unbiased for minibatches drawn uniformly, with replacement or without.
        """
        return _gradient(self, check_count("data_size", data_size, DATA_SIZE_REMEDY))

    def row_curvature(self, data_size: Any) -> Estimate:
        """The function of (position, minibatch) that estimates a curvature for each row.

        It is S = 1 + τ Σ |partner|² over the row's ratings, which bounds the eigenvalues of
        -∂² log φ in the row; of shape (U, 1) and (I, 1), for `levymc.sgfla(curvature=...)`.  A bias
        counts as one more column, whose partner is 1.
        """
        return _curvature(self, check_count("data_size", data_size, DATA_SIZE_REMEDY))

    def row_preconditioner(
        self, users: Any, items: Any, s2: Any = 0.25, c: Any = 100.0
    ) -> dict[str, np.ndarray]:
        """1/(1 + τ s²(d + c)) for each row, d the number of its ratings.

        About the inverse of a row's curvature if its partners' entries have mean square s², with c
        in place of ratings for rows that have few.
        """
        check_positive("s2", s2, "It is about the mean square of a factor's entries.")
        check_positive("c", c, "It stands for ratings of rows that have few.")

        def steps(rows: Any, num_rows: int) -> np.ndarray:
            counts = np.bincount(np.asarray(rows), minlength=num_rows)
            return 1 / (1 + self.precision * s2 * (counts + c))

        return self._by_row(steps(users, self.num_users), steps(items, self.num_items))

    def _residuals(self, position: Position, ratings: Ratings) -> Array:
        users, items, values = ratings
        mean = self.predict(position, users, items)
        return jnp.asarray(values, mean.dtype) - mean

    def _by_row(self, of_user: Any, of_item: Any) -> dict[str, Any]:
        """One number for each row, as a pytree that broadcasts to the position."""
        tree = {"users": of_user[:, None], "items": of_item[:, None]}
        if self.has_biases:
            tree |= {"user_biases": of_user, "item_biases": of_item}
        return tree


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
    "item_biases": (I,).  Ratings are (users, items, values), arrays of one length, with users and
    items numbered from 0: other numbers make NaN of all that they enter, and a run counts such a
    step as divergent.  Columns that are zero in both matrices are harmless: rows may be padded.

    Args:
        num_users, num_items: U and I.
        rank: L, the columns of the factors.
        center: μ, such as the mean of the ratings for training.
        biases: give each user and item a bias.
        noise_precision: τ > 0.

    Returns:
        A `MatrixFactorization`, whose methods are the functions of the model.

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
    return _model(
        check_count("num_users", num_users, "It is the number of rows of A."),
        check_count("num_items", num_items, "It is the number of rows of B."),
        check_count("rank", rank, "It is the number of columns of A and B."),
        float(center),
        bool(biases),
        float(noise_precision),
    )


def _rows(tables: Position, name: str, numbers: Any) -> Array:
    """NaN in the place of rows that there are not, where JAX would take others."""
    entries = jnp.asarray(tables[name]).at[jnp.asarray(numbers)]
    return entries.get(mode="fill", fill_value=jnp.nan, wrap_negative_indices=False)


# One object for equal models, and one function for each of their data sizes: methods and functions
# compare by identity, and a program that was compiled with one is to be found again.
_model = lru_cache(maxsize=64)(MatrixFactorization)


@lru_cache(maxsize=64)
def _gradient(model: MatrixFactorization, data_size: int) -> Estimate:
    r"""-A_u + τ (N/|Ω|) Σ r B_i over the user's ratings in Ω, likewise for items and biases."""

    def estimate(position: Position, minibatch: Ratings) -> Position:
        users, items, values = minibatch
        weight = model.precision * data_size / values.shape[0]
        pull = weight * model._residuals(position, minibatch)
        # Written out, not by jax.grad: the rows of both factors are looked up once.
        rows = {"users": users, "items": items}
        partners = {
            "users": _rows(position, "items", items),
            "items": _rows(position, "users", users),
        }
        terms = {name: pull[:, None] * partner for name, partner in partners.items()}
        if model.has_biases:
            rows |= {"user_biases": users, "item_biases": items}
            terms |= {"user_biases": pull, "item_biases": pull}
        return {name: (-position[name]).at[rows[name]].add(terms[name]) for name in position}

    return estimate


@lru_cache(maxsize=64)
def _curvature(model: MatrixFactorization, data_size: int) -> Estimate:
    def summed(terms: Array, rows: Any, num_rows: int) -> Array:
        return jnp.zeros(num_rows, terms.dtype).at[rows].add(terms)

    def estimate(position: Position, minibatch: Ratings) -> Position:
        users, items, values = minibatch
        weight = model.precision * data_size / values.shape[0]
        squares = {name: jnp.sum(position[name] ** 2, axis=-1) for name in ("users", "items")}
        extra = 1 if model.has_biases else 0
        to_user, to_item = _rows(squares, "items", items), _rows(squares, "users", users)
        of_user = 1 + summed(weight * (to_user + extra), users, model.num_users)
        of_item = 1 + summed(weight * (to_item + extra), items, model.num_items)
        return model._by_row(of_user, of_item)

    return estimate
