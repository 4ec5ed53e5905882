"""Compiled programs on disk, which are run when a store is resumed, and the arrays they take."""

import dataclasses
import inspect
import io
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from levymc import _native
from levymc._room import keeps_programs
from levymc._workdir import save_arrays

from ._engine import Call, Leaves, Marks
from ._integrity import StoreError, digest
from ._iterate import Run

ADVANCE, FINISH = "advance.bin", "finish.bin"
SAME_SIZE = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}  # by bytes of a number
# Where in somebody's source an operation comes from, which a program mentions.
_STRING = r'"(?:[^"\\]|\\.)*"'
PLACES = re.compile(
    rf"^#loc.*\n|\s*\bloc\((?:[^()\"]|{_STRING}|\((?:[^()\"]|{_STRING})*\))*\)", re.MULTILINE
)
PLATFORMS = {"gpu": ("cuda", "rocm")}  # what JAX calls them when it exports


# Functions.


def exported(run: Run) -> dict[str, export.Exported]:
    """The compiled functions of a run by the names of their files, for another process."""
    data, _ = run.feed.take(0, 0)
    call = run.plan.call(0, 1, run.program.slots, run.program.block)
    # JAX refuses calls that it does not know; ours are found again when the program is loaded.
    ours = [export.DisabledSafetyCheck.custom_call(name) for name in _native.TARGETS]
    # The function itself, as how it is compiled is said where it is called.
    flat = _flat(inspect.unwrap(run.program.advance))
    advance = export.export(jax.jit(flat), disabled_checks=ours)
    arguments = (run.parameters, run.carry, run.keys, data, call[:3], tuple(call.marks))
    try:
        found = {ADVANCE: advance(*arguments)}
        if run.names:
            found[FINISH] = export.export(run.program.finish)(run.carry)
    except (NotImplementedError, ValueError) as error:
        raise ValueError(
            f"`store` must be None for this algorithm, whose program cannot be written to disk "
            f"({error}). Leave out callbacks to Python, or run without a store."
        ) from error
    return found


def _flat(advance: Any) -> Any:
    """Without our own types, which another process would have to know to read the program."""

    def plain(
        parameters: Leaves, carry: Leaves, keys: Any, data: Leaves, call: Any, where: Any
    ) -> Any:
        first, count, is_fresh = call
        return advance(parameters, carry, keys, data, Call(first, count, is_fresh, Marks(*where)))

    return plain


def texts_of(functions: Mapping[str, export.Exported]) -> dict[str, str]:
    """What functions compute, by their names and in the order of these."""
    return {name: function.mlir_module() for name, function in sorted(functions.items())}


def identity(texts: Mapping[str, str]) -> str:
    """A checksum of what functions compute: the same for the same code in another process."""
    whole = "\n".join(f"{name}\n{text}" for name, text in texts.items())
    return digest(PLACES.sub("", whole).encode())


def calls_kernels(texts: Mapping[str, str]) -> bool:
    """Whether programs need levymc's native kernels, which are not in them."""
    return any(name in text for text in texts.values() for name in _native.TARGETS)


def when_called(read: Callable[[], bytes], *, is_native: bool) -> Callable[..., Any]:
    """A function on disk that is read, and anything of it executed, when it is called first."""
    loaded: list[Callable[..., Any]] = []

    def call(*arguments: Any) -> Any:
        if loaded:
            return loaded[0](*arguments)
        if is_native:
            _native.load()
        function = _compiled(read())
        try:
            found = function(*arguments)
        except (TypeError, ValueError) as error:
            raise StoreError(
                f"The stored program does not fit the arrays that are stored with it ({error}). "
                "Restore the store from a copy, or run again into a new folder."
            ) from error
        loaded.append(function)
        return found

    return call


@keeps_programs
@lru_cache(maxsize=32)  # so that a second run of the same program compiles nothing
def _compiled(serialized: bytes) -> Callable[..., Any]:
    try:
        function = export.deserialize(bytearray(serialized))
    except Exception as error:  # it is as it was written, but of another version
        raise StoreError(
            f"The stored program cannot be read by JAX {jax.__version__} ({error}). Resume with "
            "the versions that run.json names; levymc.load reads the draws that there are."
        ) from error
    here = jax.default_backend()
    if not set(PLATFORMS.get(here, (here,))) & set(function.platforms):
        raise StoreError(
            f"The stored program is for {' or '.join(function.platforms)}, and JAX runs on {here}. "
            f"Resume where the run was begun, or with JAX_PLATFORMS={function.platforms[0]}."
        )
    return jax.jit(_without_lapack(function).call)


def _without_lapack(function: export.Exported) -> export.Exported:
    """The same, for which JAX does not load SciPy's linear algebra, unless it is used.

    JAX does so for all that names a CPU, and for few programs it takes a fifth of the time to the
    first draw.  That the platform is right was checked.
    """
    if b"lapack" in function.mlir_module_serialized:
        return function
    checks = (*function.disabled_safety_checks, export.DisabledSafetyCheck.platform())
    return dataclasses.replace(function, platforms=("any",), disabled_safety_checks=checks)


# Arrays.


def packed(leaves: Mapping[str, Leaves]) -> bytes:
    """Lists of arrays by name as the content of a file, without pickle.

    Types that NumPy has not, such as bfloat16, are written as the integers of their bits.
    """
    arrays = {}
    for name, group in leaves.items():
        for place, leaf in enumerate(group):
            if jnp.issubdtype(leaf.dtype, jax.dtypes.extended):
                raise TypeError(
                    f"A store keeps arrays of numbers, got {leaf.dtype} in a state of the chains. "
                    "Keep jax.random.key_data(key) in the state instead."
                )
            suffix, bits = in_bits(np.asarray(leaf))
            arrays[f"{name}.{place}{suffix}"] = bits
    stream = io.BytesIO()
    save_arrays(stream, arrays)
    return stream.getvalue()


def in_bits(array: np.ndarray) -> tuple[str, np.ndarray]:
    """An array as NumPy's files can hold it, and what its name there ends with."""
    if array.dtype.kind in "biufcSU":
        return "", array
    return f".{array.dtype.name}", array.view(SAME_SIZE[array.dtype.itemsize])


def from_bits(array: np.ndarray, dtype: str = "") -> np.ndarray:
    """The array again, with the type that its name ended with, if any."""
    return array.view(jnp.dtype(dtype)) if dtype else array


def unpacked(content: bytes) -> dict[str, list[np.ndarray]]:
    """The lists again."""
    found: dict[str, dict[int, np.ndarray]] = {}
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        for file in archive.files:
            name, place, *dtype = file.split(".")
            found.setdefault(name, {})[int(place)] = from_bits(archive[file], *dtype)
    return {name: [group[place] for place in range(len(group))] for name, group in found.items()}


def on_device(arrays: list[np.ndarray]) -> Leaves:
    """On the default device, and bound to it as what the program returns is, which would be
    compiled anew for others.
    """
    found = jax.device_put(arrays)
    for leaf, array in zip(found, arrays, strict=True):
        if leaf.dtype != array.dtype:
            raise StoreError(
                f"The store holds numbers of type {array.dtype}, which JAX would make {leaf.dtype} "
                'here. Call jax.config.update("jax_enable_x64", True) before resuming it.'
            )
    return [jax.device_put(leaf, leaf.sharding) for leaf in found]
