"""Which rows of the data the plates of a model take."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array
from numpyro.primitives import Messenger

from ._imputed import imputing


class _Taking(Messenger):
    """Gives plates their indices; a plate that is not named takes all of its rows."""

    def __init__(self, fn: Callable[..., Any], indices: dict[str, Array]) -> None:
        super().__init__(fn)
        self.indices = indices

    def process_message(self, msg: Any) -> None:
        if msg["type"] != "plate":
            return
        size, _ = msg["args"]
        rows = self.indices.get(msg["name"])
        msg["value"] = _all(size) if rows is None else rows
        # NumPyro would warn of indices that are not as many as the model asks for.
        msg["args"] = (size, len(msg["value"]))


def _all(size: int) -> Array:
    """Known also while a program is traced, so that they can index data in NumPy."""
    with jax.ensure_compile_time_eval():
        return jnp.arange(size)


def taking(model: Callable[..., Any], indices: dict[str, Array]) -> Callable[..., Any]:
    """The model on the rows with these indices, by plate; plates scale their sites up by that."""
    return _Taking(imputing(model), indices)


def taking_all(model: Callable[..., Any]) -> Callable[..., Any]:
    """The model on all of the data, where NumPyro would draw a subsample, or miss a key for it."""
    return _Taking(imputing(model), {})
