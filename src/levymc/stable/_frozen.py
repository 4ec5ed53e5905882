r"""The law with its parameters fixed, as `scipy.stats` has its laws."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc._checks import (
    as_parameter,
    check_broadcast,
    check_interval,
    check_key,
    check_positive,
    check_real,
    check_shape,
)
from levymc._trees import module

from . import _law
from ._law import ALPHA_REMEDY, SCALE_REMEDY
from ._sample import sample

_SEED_REMEDY = "Give an integer or a numpy.random.Generator; or a JAX key as `key`."


def symmetric(alpha: Any, loc: Any = 0.0, scale: Any = 1.0) -> "SymmetricLaw":
    r"""The law of loc + scale·X, where X is SαS(1), as a frozen law of `scipy.stats`:

    .. math:: E\, e^{iωX} = e^{-|ω|^α}, \qquad α = 2: N(\text{loc}, 2\,\text{scale}^2).

    NumPy in, NumPy out: numbers and NumPy's arrays are computed with in float64, whatever JAX's
    precision is, and come back in the dtype that they had.  Where anything is an array of JAX's,
    or is traced, all is JAX's: the law is a pytree, and may be differentiated in its parameters.

    Not valid when: α < 0.5, where the law is not tabulated.

    Args:
        alpha: characteristic exponent in [0.5, 2].
        loc: finite, the median.
        scale: positive.  Arrays of these three broadcast, against each other and what follows.

    Returns:
        `SymmetricLaw`, with `pdf`, `logpdf`, `cdf`, `sf`, `ppf`, `isf`, `rvs`, `median`, `mean`,
        `var`, `std`, `interval`, and `fit`.

    Raises:
        ValueError, TypeError: an argument outside its range, or of the wrong kind.

    Examples:
        >>> import levymc
        >>> law = levymc.stable.symmetric(1.0, loc=3.0, scale=2.0)  # Cauchy
        >>> round(float(law.cdf(5.0)), 4), round(float(law.ppf(0.75)), 4)
        (0.75, 5.0)
        >>> law.rvs(3, random_state=0).shape
        (3,)
        >>> found = law.fit(law.rvs(2000, random_state=0))
        >>> round(found.alpha, 1), round(found.scale)
        (1.0, 2)

    References: [nolan2020], the parametrisation S0 at β = 0.
    """
    check_interval("alpha", alpha, 0.5, 2.0, includes_low=True, remedy=ALPHA_REMEDY)
    check_real("loc", loc, "It is the median of the law.")
    check_positive("scale", scale, SCALE_REMEDY)
    law = SymmetricLaw(*map(_parameter, (alpha, loc, scale)))
    check_broadcast("loc", law.loc, np.shape(law.alpha))
    both = np.broadcast_shapes(np.shape(law.alpha), np.shape(law.loc))
    check_broadcast("scale", law.scale, both)
    return law


@module()
class SymmetricLaw:
    """See `symmetric`."""

    alpha: Any
    loc: Any
    scale: Any

    def pdf(self, x: Any) -> Any:
        """The density at finite `x`."""
        return self._computed("pdf", x, lambda value: value / self.scale)

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at finite `x`."""
        log = jnp.log if _is_jax(self.scale) else np.log
        return self._computed("logpdf", x, lambda value: value - log(self.scale))

    def cdf(self, x: Any) -> Any:
        """P(X ≤ x), accurate relative to its size in the left tail, too."""
        return self._computed("cdf", x)

    def sf(self, x: Any) -> Any:
        """P(X > x), accurate relative to its size in the right tail, too."""
        return self._computed("sf", x)

    def ppf(self, p: Any) -> Any:
        """The x with P(X ≤ x) = p; ±inf at p = 0 and 1, NaN outside [0, 1]."""
        return self._quantile(p, 1.0)

    def isf(self, p: Any) -> Any:
        """The x with P(X > x) = p, accurate for p too small for 1 - p to differ from 1."""
        return self._quantile(p, -1.0)

    def median(self) -> Any:
        return self.loc + np.zeros(self.shape)

    def mean(self) -> Any:
        """`loc` for α > 1; NaN, as there is none, for α ≤ 1."""
        return self._where(self.alpha > 1, self.loc, np.nan)

    def var(self) -> Any:
        """2 scale² at α = 2; infinite below."""
        return self._where(self.alpha == 2, 2 * self.scale**2, np.inf)

    def std(self) -> Any:
        return self.var() ** 0.5

    def interval(self, confidence: Any) -> tuple[Any, Any]:
        """The ends of what has the median in its middle, and this probability."""
        check_interval(
            "confidence", confidence, 0.0, 1.0, includes_low=True, remedy="Give 0.9, say."
        )
        beyond = (1 - confidence) / 2
        return self.ppf(beyond), self.isf(beyond)

    def rvs(self, size: Any = None, random_state: Any = None, *, key: Any = None) -> Any:
        """Independent draws by `stable.sample`, in JAX's default precision.

        Args:
            size: shape of the draws, against which the parameters broadcast; theirs if not given.
            random_state: for an array of NumPy: a seed, a generator of NumPy's, or None for
                another one each time.
            key: for an array of JAX: a random key, in place of `random_state`.

        Raises:
            ValueError, TypeError: an argument of the wrong kind, or both kinds of seeds.
        """
        if key is not None and random_state is not None:
            raise TypeError(
                f"`random_state` must be None beside a `key`, got {random_state!r}. {_SEED_REMEDY}"
            )
        shape = self.shape if size is None else check_shape("size", size)
        chosen = check_key(key) if key is not None else _key_of(random_state)
        for name in ("alpha", "loc", "scale"):
            check_broadcast(name, getattr(self, name), shape)
        full = np.broadcast_shapes(shape, self.shape)  # a draw for each `loc`, too
        draws = self.loc + sample(chosen, self.alpha, full, scale=self.scale)
        return draws if key is not None else np.asarray(draws)[()]

    @staticmethod
    def fit(data: Any, **fixed: Any) -> Any:
        """Maximum likelihood: `levymc.stable.fit`; the parameters of this law play no part."""
        from ._fit import fit  # which makes such laws

        return fit(data, **fixed)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the parameters, broadcast."""
        return np.broadcast_shapes(*map(np.shape, (self.alpha, self.loc, self.scale)))

    def _where(self, condition: Any, one: Any, other: float) -> Any:
        xp: Any = jnp if self._is_jax else np
        return xp.broadcast_to(xp.where(condition, one, other), self.shape)[()]

    @property
    def _is_jax(self) -> bool:
        return _is_jax(self.alpha, self.loc, self.scale)

    def _computed(self, name: str, x: Any, after: Any = lambda value: value) -> Any:
        """A function of SαS(1) at (x - loc)/scale, and what is left to do."""
        check_real("x", x, _law.FINITE_REMEDY)
        points, dtype = self._wide(x)
        return _cast(after(self._standard(name, (points - self.loc) / self.scale)), dtype)

    def _quantile(self, p: Any, sign: float) -> Any:
        levels, dtype = self._wide(p)
        return _cast(self.loc + sign * self.scale * self._standard("ppf", levels), dtype)

    def _standard(self, name: str, x: Any) -> Any:
        if isinstance(x, jax.Array):
            return getattr(_law, name)(x, self.alpha)
        return _law.on_host(name, x, self.alpha)

    def _wide(self, x: Any) -> tuple[Any, Any]:
        """`x` in the precision to compute in, as an array of NumPy's or of JAX's, and its dtype."""
        if self._is_jax or _is_jax(x):
            dtype = jnp.result_type(x)
            if not jnp.issubdtype(dtype, jnp.floating):
                dtype = jnp.result_type(float)
            return jnp.asarray(x, jnp.promote_types(dtype, jnp.float32)), dtype
        points = np.asarray(x)
        dtype = points.dtype if points.dtype.kind == "f" else np.dtype(float)
        return points.astype(np.float64), dtype


def _parameter(value: Any) -> Any:
    """A number, or an array in double precision, unless it is JAX's."""
    return as_parameter(value if _is_jax(value) else np.asarray(value, np.float64))


def _is_jax(*values: Any) -> bool:
    return any(isinstance(value, jax.Array) for value in values)


def _cast(value: Any, dtype: Any) -> Any:
    """Of this dtype; an array of NumPy's without axes as the number that it is."""
    return value.astype(dtype) if isinstance(value, jax.Array) else np.asarray(value, dtype)[()]


def _key_of(random_state: Any) -> jax.Array:
    """A key of 64 bits from a generator of NumPy's, or from what seeds one."""
    if isinstance(random_state, np.random.RandomState):
        words = random_state.randint(0, 2**32, 2, dtype=np.uint32)
    else:
        try:
            words = np.random.default_rng(random_state).integers(2**32, size=2, dtype=np.uint32)
        except (TypeError, ValueError):
            raise TypeError(
                f"`random_state` must be a seed, got {random_state!r}. {_SEED_REMEDY}"
            ) from None
    return jax.random.fold_in(jax.random.key(words[0]), words[1])
