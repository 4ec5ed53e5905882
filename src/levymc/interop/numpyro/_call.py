"""A model with its arguments, and what it computes, to be told from another."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc._checks import is_traced
from levymc._settled import numbers_of, programs_of
from levymc.run import fingerprint

PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Call:
    """A model and its arguments, equal to another if the model is the same and the data equal."""

    def __init__(self, model: Callable[..., Any], args: Any, kwargs: Any) -> None:
        leaves, structure = jax.tree.flatten((args, kwargs))
        # NumPy's arrays may be changed later; the pieces are of what they are now.
        # Masked ones stay masked: what is below a mask is no data.
        kept = [
            np.array(leaf, subok=True) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves
        ]
        self.model = model
        self.args, self.kwargs = jax.tree.unflatten(structure, kept)
        self.is_comparable = all(_is_comparable(leaf) for leaf in kept)
        known = tuple(_known(leaf) for leaf in kept) if self.is_comparable else None
        has_64_bits = bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]
        self.identity = (model, structure, known, has_64_bits)

    def __hash__(self) -> int:
        return hash(self.identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Call) and self.identity == other.identity


def _is_comparable(leaf: Any) -> bool:
    """Not so are objects that may have changed, and numbers that are not known yet."""
    if isinstance(leaf, jax.Array):
        return not is_traced(leaf) and not _is_key(leaf)
    if isinstance(leaf, np.ndarray):
        return type(leaf) is np.ndarray and leaf.dtype != object  # others may hold more
    if isinstance(leaf, np.generic):
        return leaf.dtype != object
    return isinstance(leaf, PLAIN)


def _known(leaf: Any) -> Any:
    return type(leaf), leaf if isinstance(leaf, PLAIN) else fingerprint([leaf])


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def computed(function: Callable[[Any], Any], example: Any) -> str | None:
    """A checksum of what a function computes, from whatever it reads, as that is at the moment.

    None where a program does not tell: of functions of Python that it calls back, and of numbers
    that are not known yet.  The function must be new, as JAX remembers what it has traced.
    """
    whole, shapes = jax.make_jaxpr(function, return_shape=True)(example)
    programs = list(programs_of(whole))
    numbers = [number for program in programs for number in numbers_of(program)]
    names = {operation.primitive.name for program in programs for operation in program.eqns}
    if is_traced(numbers) or any("callback" in name for name in names):
        return None
    text = np.frombuffer(f"{whole} {shapes}".encode(), np.uint8)
    plain = [jax.random.key_data(number) if _is_key(number) else number for number in numbers]
    return fingerprint([text, *plain])
