"""Functions as they are when a run begins or a drift is called, which programs are found by.

A program is found again by the functions that it was made from.  What these read, such as an
attribute of an object or a variable of a notebook, may have changed since, and the same function
would find the program of before.  So each is traced where it enters, once a run or a call, and one
that computes something else than before becomes another function.
"""

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from levymc._checks import is_in_program, is_traced
from levymc._trees import ByIdentity, hashable, is_module, static_fields

T = TypeVar("T")

MOST_KEPT = 128  # more than there are programs in memory
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
PLAIN = (type(None), bool, int, float, complex, str, bytes, np.ndarray, np.generic, jax.Array)
OURS = ("levymc", "jax", "numpy")  # whose functions read nothing that changes


class Settled(ByIdentity):
    """A function as it was when it was seen."""


_KEPT: dict[Any, Settled] = {}


def settled(function: Callable[..., Any], *examples: Any, **named: Any) -> Callable[..., Any]:
    """The function, by the same object as long as it computes the same of arguments like these.

    What functions of Python compute that it calls back is not seen.
    """
    if isinstance(function, Settled):
        return function
    known: Callable[..., Any] = hashable(function)
    computed = computed_by(function, *examples, **named)
    if computed is None:  # who uses it will see why
        return known
    if is_traced(computed.numbers):  # it was made for this alone, and is not to be kept
        return known
    found = _KEPT.pop((known, computed), None) or Settled(known)
    _KEPT[known, computed] = found  # as the latest
    while len(_KEPT) > MOST_KEPT:
        _KEPT.pop(next(iter(_KEPT)))
    return found


class Computed:
    """What a function computes, from all that it reads as that is at the moment: equal if the same.

    Large arrays are compared, by their identity first, and not hashed.
    """

    def __init__(self, function: Callable[..., Any], *examples: Any, **named: Any) -> None:
        def anew(*given: Any, **more: Any) -> Any:  # as JAX remembers what it has traced
            return function(*given, **more)

        traced, shapes = jax.make_jaxpr(anew, return_shape=True)(*examples, **named)
        programs = list(programs_of(traced))
        numbers = [number for program in programs for number in numbers_of(program)]
        small = [number for number in numbers if _is_small(number)]
        bits = b"".join(np.asarray(number).tobytes() for number in small)
        self.text = ADDRESS.sub("", f"{traced} {shapes}"), bits
        self.numbers = [_kept(number) for number in numbers if not _is_small(number)]

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Computed)
            and self.text == other.text
            and len(self.numbers) == len(other.numbers)
            and all(map(_are_same, self.numbers, other.numbers))
        )


def computed_by(function: Callable[..., Any], *examples: Any, **named: Any) -> Computed | None:
    """What it computes; None where it cannot be traced."""
    try:
        return Computed(function, *examples, **named)
    except Exception:  # whatever a function may do with what it does not expect
        return None


def programs_of(program: Any) -> Iterator[Any]:
    """A program, and those that its operations contain."""
    yield program
    for leaf in _parameters(program):
        if isinstance(leaf, jax.extend.core.Jaxpr | jax.extend.core.ClosedJaxpr):
            yield from programs_of(leaf)


def numbers_of(program: Any) -> list[Any]:
    """The arrays in a program, which its text leaves out."""
    atoms = [*program.outvars, *(atom for line in program.eqns for atom in line.invars)]
    literals = [atom.val for atom in atoms if isinstance(atom, jax.extend.core.Literal)]
    arrays = [leaf for leaf in _parameters(program) if isinstance(leaf, np.ndarray | jax.Array)]
    return [*getattr(program, "consts", ()), *literals, *arrays]


def _parameters(program: Any) -> Iterator[Any]:
    for line in program.eqns:
        for value in line.params.values():
            yield from (
                jax.tree.leaves(value) if isinstance(value, tuple | list | dict) else (value,)
            )


def _is_small(number: Any) -> bool:
    return isinstance(number, bool | int | float | complex | np.generic) or (
        isinstance(number, np.ndarray) and number.ndim == 0
    )


def _kept(number: Any) -> Any:
    """As it is now: an array of NumPy may be written to."""
    return number if isinstance(number, jax.Array) or is_traced(number) else np.array(number)


def _are_same(one: Any, other: Any) -> bool:
    """Whether arrays have the same bits."""
    if one is other:
        return True
    try:
        first, second = _plain(one), _plain(other)
    except Exception:  # which is deleted, spread over processes, or not known yet
        return False
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    return np.array_equal(_bits(first), _bits(second))


def _plain(number: Any) -> np.ndarray:
    is_key = isinstance(number, jax.Array) and jnp.issubdtype(number.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(number) if is_key else number)


def _bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


# Algorithms and their parts.


class OfPositions:
    """What has no functions but those of a position, whatever their fields are called."""


class Settling:
    """Goes through algorithms for chains at positions like one.

    is_opaque: something was met that is no function of a position, and may read what changes.
    """

    def __init__(self, position: Any) -> None:
        self.position = position
        self.is_opaque = False
        self._known: dict[Any, Callable[..., Any]] = {}

    def settle(self, node: T) -> T:
        """The same with its functions of a position settled."""
        return self._settled(node, is_of_position=False, is_static=False)

    def _settled(self, node: Any, *, is_of_position: bool, is_static: bool) -> Any:
        if isinstance(node, PLAIN) or is_traced(node):
            return node
        if is_module(node):
            return self._module(node)
        if isinstance(node, Partial) and not is_static:
            inside = (node.args, node.keywords)
            return Partial(self._function(node.func, *inside), *node.args, **node.keywords)
        if is_of_position and callable(node):
            return self._function(node, (), {})
        try:
            self.is_opaque |= not is_fixed(node)
        except (RecursionError, ValueError):  # a function that calls itself, or is not whole yet
            self.is_opaque = True
        return node

    def _module(self, node: Any) -> Any:
        fields = [field.name for field in dataclasses.fields(node) if field.init]
        static = static_fields(node)
        before = {name: getattr(node, name) for name in fields}
        after = {
            name: self._settled(
                value,
                is_of_position=isinstance(node, OfPositions) or name.endswith("_fn"),
                is_static=name in static,
            )
            for name, value in before.items()
        }
        if all(after[name] is before[name] for name in fields):
            return node
        return dataclasses.replace(node, **after)

    def _function(self, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if isinstance(function, Settled):
            return function
        known = hashable(function)
        if args or named:
            found = settled(known, *args, self.position, **named)
        else:
            if known not in self._known:
                self._known[known] = settled(known, self.position)
            found = self._known[known]
        self.is_opaque |= not isinstance(found, Settled)
        return found


def as_now(node: T, position: Any) -> T:
    """A drift, say, with its functions settled, where one is asked for at a position.

    As it is inside of a program that is being traced: it was settled before, or its program is new.
    """
    if is_traced((node, position)) or is_in_program():
        return node
    return Settling(position).settle(node)


def is_fixed(node: Any) -> bool:
    """Whether what a program takes from it cannot change without its being another."""
    if isinstance(node, (*PLAIN, Settled)):
        return True
    if isinstance(node, tuple | list):
        return all(map(is_fixed, node))
    if isinstance(node, dict):
        return all(map(is_fixed, node.values()))
    if inspect.isfunction(node) and _is_ours(node):
        cells = [cell.cell_contents for cell in node.__closure__ or ()]
        return all(map(is_fixed, cells))
    if isinstance(node, type) or inspect.isbuiltin(node):
        return True
    if dataclasses.is_dataclass(node) and _is_ours(type(node)):
        return all(is_fixed(getattr(node, field.name)) for field in dataclasses.fields(node))
    return not isinstance(node, ByIdentity) and _is_ours(type(node)) and not callable(node)


def _is_ours(thing: Any) -> bool:
    return (getattr(thing, "__module__", "") or "").partition(".")[0] in OURS
