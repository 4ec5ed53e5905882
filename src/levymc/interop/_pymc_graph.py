"""A PyMC model's graph as JAX functions, with its data as they are at the moment."""

import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

UNSUPPORTED_BY_JAX = (
    "Write that part of the model with operations that PyTensor knows how to hand to JAX."
)
OUT_OF_BOUNDS_IS_IMPOSSIBLE = "local_check_parameter_to_ninf_switch"
BOUNDS_ARE_NOT_CHECKED = "local_remove_check_parameter"


def pymc_with_jax() -> Any:
    """The module pymc, with its backend for JAX loaded; JAX's own settings are as before.

    Raises: ImportError: without PyMC.
    """
    try:
        import pymc
    except ModuleNotFoundError as error:
        raise ImportError(
            "`levymc.interop.pymc` needs PyMC: pip install 'levymc[pymc]'."
        ) from error
    # In a thread of its own, settings are the global ones, whatever contexts the caller is in.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_load_backend).result()
    return pymc


def _load_backend() -> None:
    """Importing the backend sets JAX's precision for everyone, and asks XLA for 100 devices."""
    precision: bool = jax.config.jax_enable_x64  # type: ignore[attr-defined]
    flags = os.environ.get("XLA_FLAGS")
    try:
        import pymc.sampling.jax  # noqa: F401
    finally:
        if jax.config.jax_enable_x64 != precision:  # type: ignore[attr-defined]
            jax.config.update("jax_enable_x64", precision)
        if flags is None:
            os.environ.pop("XLA_FLAGS", None)
        else:
            os.environ["XLA_FLAGS"] = flags


class Data:
    """The values of a model's shared variables, pm.Data above all, at the time of this object."""

    def __init__(self, outputs: list[Any]) -> None:
        self.values = {var: np.array(var.get_value()) for var in shared_variables(outputs)}

    def check_unchanged(self) -> None:
        """Refuse to go on with data that the model no longer has."""
        changed = [str(var.name) for var, value in self.values.items() if not _is_same(var, value)]
        if changed:
            raise ValueError(
                f"`model` must have the data that it had when it was compiled, got others for "
                f"{', '.join(changed)}: a compiled model keeps its data. "
                "After pm.set_data, call from_pymc(model) again."
            )

    def frozen(self, outputs: list[Any]) -> list[Any]:
        """The graphs with constants in the places of shared variables."""
        from pytensor.graph.replace import clone_replace

        constants = {var: var.type.make_constant(value) for var, value in self.values.items()}
        return clone_replace(outputs, replace=constants)


def _is_same(var: Any, value: np.ndarray) -> bool:
    now = np.asarray(var.get_value(borrow=True))
    are_both_nan = (now != now) & (value != value) if now.shape == value.shape else False
    return now.shape == value.shape and bool(np.all((now == value) | are_both_nan))


def shared_variables(outputs: list[Any]) -> list[Any]:
    """The shared variables of graphs, random generators left out."""
    return [var for var in _shared(outputs) if not _is_random(var)]


def draws_at_random(outputs: list[Any]) -> bool:
    """Whether graphs make random draws each time that they are evaluated."""
    return any(_is_random(var) for var in _shared(outputs))


def _shared(outputs: list[Any]) -> list[Any]:
    from pytensor.compile.sharedvalue import SharedVariable
    from pytensor.graph.traversal import graph_inputs

    return [var for var in dict.fromkeys(graph_inputs(outputs)) if isinstance(var, SharedVariable)]


def _is_random(var: Any) -> bool:
    from pytensor.tensor.random.type import RandomType

    return isinstance(var.type, RandomType)


def jaxified(
    inputs: list[Any], outputs: list[Any], data: Data, *, check_bounds: bool
) -> Callable[..., list[Any]]:
    """The function from inputs to outputs, in the precision of the moment.

    Its constants have that precision, so that another one needs another function.  A parameter out
    of its bounds makes a density zero, as everywhere in PyMC but in its own functions for JAX.
    """
    from pytensor.compile import mode
    from pytensor.graph.fg import FunctionGraph
    from pytensor.link.jax.dispatch import jax_funcify

    rule = OUT_OF_BOUNDS_IS_IMPOSSIBLE if check_bounds else BOUNDS_ARE_NOT_CHECKED
    graph = FunctionGraph(inputs=inputs, outputs=data.frozen(outputs), clone=True)
    with without_truncation_warnings():
        mode.JAX.including(rule).optimizer.rewrite(graph)
        try:
            return jax_funcify(graph)
        except NotImplementedError as error:
            raise NotImplementedError(
                f"`model` must be one that JAX can compute, got an operation that it cannot: "
                f"{error}. {UNSUPPORTED_BY_JAX}"
            ) from error


@contextmanager
def without_truncation_warnings() -> Iterator[None]:
    """JAX warns where a graph in 64 bits is computed in 32, as it is unless that is allowed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Explicitly requested dtype", UserWarning)
        yield
