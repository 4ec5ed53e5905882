r"""What a step computes that does not depend on where the chain is, taken out of the loop.

A step's noise depends on its key and the algorithm's numbers alone.  Computed inside the loop over
steps it costs a dozen small operations each time, and the compiler, which gives every result of a
step a kernel of its own, repeats it in each of them; computed before it, for a block of steps, it
costs what the arithmetic costs, once.  And what depends on the algorithm's numbers alone, such as
η^{1/α}, is computed once per call, so that numbers which are inputs cost little more than
constants.

The step is traced once, and its operations listed.  `settle` makes those that depend on parameters
alone, `draw` the random bits, `collect` what depends on no more than these, and `replay` the rest
with all of it given.  JAX does not promise that its programs can be listed: where they cannot, the
step computes all of it itself, from the same bits.
"""

import math
import warnings
from collections.abc import Callable, Iterable
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

# Calls that are walked through, by their names in new and old versions, and where their program is.
NESTED = {
    **{"jit": "jaxpr", "pjit": "jaxpr"},
    **{"custom_jvp_call": "call_jaxpr", "custom_vmap_call": "call"},
}
CHEAP = ("broadcast_in_dim",)  # made again rather than kept: the result is larger
# What sums up noise, and takes no longer than to read it: made again where the noise is kept.  It
# would be a kernel of its own otherwise, which makes the noise once more.
SUMMARIES = (
    *CHEAP,
    *("abs", "neg", "max", "min", "reduce_max", "reduce_min", "reduce_and", "reduce_or"),
    *("concatenate", "reshape", "squeeze", "stack"),
)
RANDOM = ("random_bits", "random_unwrap")
MOST_GROWTH = 4  # of random bits into what is made of them: if it is more, the bits are kept

THREEFRY = "threefry2x32"  # JAX's usual kind of keys
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)
MOST_PARTS = 8  # of a key, each of which is an expression of its own


class Hoisted(NamedTuple):
    """A step in parts.

    settle: parameters -> what depends on them alone.
    draw: keys -> random bits.
    collect: (keys, bits, settled, parameters) -> what depends on no more than these.
    replay: (collected, settled, parameters, rest) -> what the step returns.
    fixed: parameters -> leaves of what the step returns, None where they depend on more.
    shapes: of what the step returns.  bits, collected: of these, as lists.
    is_fixed: of each leaf that the step returns, whether it depends on parameters alone.
    """

    settle: Callable[[Any], list[Any]]
    draw: Callable[[Any], list[Any]]
    collect: Callable[[Any, list[Any], list[Any], Any], list[Any]]
    replay: Callable[[list[Any], list[Any], Any, Any], Any]
    fixed: Callable[[Any], list[Any]]
    shapes: Any
    bits: list[Any]
    collected: list[Any]
    is_fixed: list[bool]


def hoist(step: Callable[[Any, Any, Any], Any], keys: Any, parameters: Any, rest: Any) -> Hoisted:
    """Split `step(keys, parameters, rest)`; the other arguments are examples, for their shapes."""
    traced, shapes = jax.make_jaxpr(step, return_shape=True)(keys, parameters, rest)
    structure = jax.tree.structure(shapes)
    try:
        split = _split(_listed(traced), structure, (keys, parameters, rest), shapes)
        settled = jax.eval_shape(split.settle, parameters)
        bits = jax.eval_shape(split.draw, keys)
        collected = jax.eval_shape(split.collect, keys, bits, settled, parameters)
        jax.eval_shape(split.replay, collected, settled, parameters, rest)
        return split._replace(bits=bits, collected=collected)
    except Exception as error:  # whatever changed in JAX
        warnings.warn(
            "Steps draw their random bits one by one, which is slower: the programs of this "
            f"version of JAX ({jax.__version__}) have another form ({error!r}).",
            stacklevel=2,
        )
    count = len(jax.tree.leaves(shapes))
    return Hoisted(
        lambda parameters: [],
        lambda keys: [],
        lambda keys, bits, settled, parameters: [keys],
        lambda collected, settled, parameters, rest: step(collected[0], parameters, rest),
        lambda parameters: [None] * count,
        shapes,
        [],
        [keys],
        [False] * count,
    )


class _Needs(IntEnum):
    """What a value depends on, at most."""

    NOTHING = 0
    PARAMETERS = 1
    KEYS = 2
    STATE = 3


class _Line(NamedTuple):
    """An operation of a program; values have numbers."""

    program: Any
    operation: Any
    inputs: list[int]
    outs: list[int]

    @property
    def name(self) -> str:
        return self.operation.primitive.name

    @property
    def has_effects(self) -> bool:
        """Whether it is made for more than its results, such as `jax.debug.print`: in each step."""
        return bool(self.operation.effects)

    @property
    def stays(self) -> bool:
        """Whether it is made in its step, if it depends on the key.

        A loop or a condition that is mapped over steps does for each what any of them needs.
        """
        programs = (jax.extend.core.Jaxpr, jax.extend.core.ClosedJaxpr)
        inner = jax.tree.leaves(list(self.operation.params.values()))
        return any(isinstance(leaf, programs) for leaf in inner)


Make = Callable[[_Line, list[Any]], list[Any]]


class _Listing(NamedTuple):
    """A program without calls: its lines, and the numbers of what goes in, comes out or is given.

    types: of each value, by its number.
    """

    lines: list[_Line]
    arguments: list[int]
    outs: list[int]
    constants: dict[int, Any]
    types: list[Any]


def _listed(traced: Any) -> _Listing:
    """The operations of a program in their order, with those of the calls in it."""
    lines: list[_Line] = []
    constants: dict[int, Any] = {}
    types: list[Any] = []

    def number(kind: Any) -> int:
        types.append(kind)
        return len(types) - 1

    def constant(kind: Any, value: Any) -> int:
        place = number(kind)
        constants[place] = value
        return place

    def visit(program: Any, arguments: list[int]) -> list[int]:
        jaxpr = program.jaxpr
        places = dict(zip(jaxpr.invars, arguments, strict=True))
        for variable, value in zip(jaxpr.constvars, program.consts, strict=True):
            places[variable] = constant(variable.aval, value)

        def read(atom: Any) -> int:
            is_literal = isinstance(atom, jax.extend.core.Literal)
            return constant(atom.aval, atom.val) if is_literal else places[atom]

        for operation in jaxpr.eqns:
            inputs = [read(atom) for atom in operation.invars]
            inner = NESTED.get(operation.primitive.name)
            if inner is not None:
                outs = visit(operation.params[inner], inputs)
            else:
                outs = [number(variable.aval) for variable in operation.outvars]
                lines.append(_Line(jaxpr, operation, inputs, outs))
            places |= dict(zip(operation.outvars, outs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    arguments = [number(variable.aval) for variable in traced.jaxpr.invars]
    return _Listing(lines, arguments, visit(traced, arguments), constants, types)


def _split(
    listing: _Listing, structure: Any, examples: tuple[Any, Any, Any], shapes: Any
) -> Hoisted:
    of_keys, of_parameters, of_rest = _shares(listing.arguments, examples)
    needs = _needs(listing, of_keys, of_parameters, of_rest)
    settled_places = _frontier(listing, needs, _Needs.PARAMETERS, of_parameters)
    bit_places = _bits_of_keys(listing, needs)
    collected_places = _worth_keeping(listing, needs, of_keys, bit_places)

    def given(parameters: Any, settled: list[Any]) -> dict[int, Any]:
        known = dict(zip(of_parameters, jax.tree.leaves(parameters), strict=True))
        return known | dict(zip(settled_places, settled, strict=True))

    def settle(parameters: Any) -> list[Any]:
        known = dict(zip(of_parameters, jax.tree.leaves(parameters), strict=True))
        return _evaluated(listing, settled_places, known)

    def draw(keys: Any) -> list[Any]:
        return _evaluated(listing, bit_places, {of_keys[0]: keys}, _drawn)

    def collect(keys: Any, bits: list[Any], settled: list[Any], parameters: Any) -> list[Any]:
        known = given(parameters, settled) | {of_keys[0]: keys}
        known |= dict(zip(bit_places, bits, strict=True))
        return _evaluated(listing, collected_places, known)

    def replay(collected: list[Any], settled: list[Any], parameters: Any, rest: Any) -> Any:
        known = given(parameters, settled) | dict(zip(of_rest, jax.tree.leaves(rest), strict=True))
        known |= dict(zip(collected_places, collected, strict=True))
        outs = _evaluated(listing, listing.outs, known, has_effects=True)
        return jax.tree.unflatten(structure, outs)

    is_fixed = [needs[place] <= _Needs.PARAMETERS for place in listing.outs]

    def fixed(parameters: Any) -> list[Any]:
        wanted = [place for place, known in zip(listing.outs, is_fixed, strict=True) if known]
        values = iter(_evaluated(listing, wanted, given(parameters, settle(parameters))))
        return [next(values) if known else None for known in is_fixed]

    return Hoisted(settle, draw, collect, replay, fixed, shapes, [], [], is_fixed)


def _shares(places: list[int], examples: tuple[Any, ...]) -> list[list[int]]:
    """The numbers of the leaves of each argument."""
    left = iter(places)
    return [[next(left) for _ in jax.tree.leaves(example)] for example in examples]


def _needs(
    listing: _Listing, of_keys: list[int], of_parameters: list[int], of_rest: list[int]
) -> list[_Needs]:
    """What each value depends on."""
    needs = [_Needs.NOTHING] * len(listing.types)
    for places, kind in (
        (of_parameters, _Needs.PARAMETERS),
        (of_keys, _Needs.KEYS),
        (of_rest, _Needs.STATE),
    ):
        for place in places:
            needs[place] = kind
    for line in listing.lines:
        most = max((needs[place] for place in line.inputs), default=_Needs.NOTHING)
        if line.has_effects or (most == _Needs.KEYS and line.stays):
            most = _Needs.STATE
        for place in line.outs:
            needs[place] = most
    return needs


def _frontier(
    listing: _Listing, needs: list[_Needs], kind: _Needs, without: Iterable[int] = ()
) -> list[int]:
    """The values of a kind that what depends on more takes, or the step returns."""
    wanted = {place for place in listing.outs if needs[place] == kind}
    for line in listing.lines:
        if line.has_effects or any(needs[place] > kind for place in line.outs):
            wanted |= {place for place in line.inputs if needs[place] == kind}
    for line in reversed(listing.lines):
        if line.name in CHEAP and wanted & set(line.outs):
            wanted = wanted - set(line.outs) | {p for p in line.inputs if needs[p] == kind}
    return sorted(wanted - set(without))


def _bits_of_keys(listing: _Listing, needs: list[_Needs]) -> list[int]:
    """Random bits that depend on keys alone; the data of a key that was split are such, too."""
    drawn = [line.outs[0] for line in listing.lines if line.name in RANDOM]
    return [place for place in drawn if needs[place] == _Needs.KEYS]


def _worth_keeping(
    listing: _Listing, needs: list[_Needs], of_keys: list[int], bits: list[int]
) -> list[int]:
    """What is collected: all that depends on no more than keys and numbers, unless it is large."""
    made = _without_summaries(listing, needs, _frontier(listing, needs, _Needs.KEYS))
    is_small = _size(listing, made) <= MOST_GROWTH * _size(listing, bits)
    return made if is_small else [*of_keys, *bits]


def _without_summaries(listing: _Listing, needs: list[_Needs], places: list[int]) -> list[int]:
    """Of values to be collected, those that are no mere summaries of the others."""
    makers = {place: line for line in listing.lines for place in line.outs}
    kept = set(places)

    def follows(place: int, others: set[int]) -> bool:
        if place in others or needs[place] < _Needs.KEYS:
            return True
        line = makers.get(place)
        return (
            line is not None
            and line.name in SUMMARIES
            and all(follows(source, others) for source in line.inputs)
        )

    for place in reversed(places):  # what is made last first: it may follow from what is before
        if follows(place, kept - {place}):
            kept.remove(place)
    return sorted(kept)


def _size(listing: _Listing, places: list[int]) -> int:
    """Bytes."""
    types = [listing.types[place] for place in places]
    return sum(math.prod(kind.shape) * kind.dtype.itemsize for kind in types)


def _evaluated(
    listing: _Listing,
    wanted: list[int],
    given: dict[int, Any],
    make: Make | None = None,
    *,
    has_effects: bool = False,
) -> list[Any]:
    """Values by their numbers, by the lines that lead to them from those that are given.

    has_effects: with the lines that have some.
    """
    values = listing.constants | given
    missing = {place for place in wanted if place not in values}
    path: list[_Line] = []
    for line in reversed(listing.lines):
        if missing & set(line.outs) or (has_effects and line.has_effects):
            path.append(line)
            missing -= set(line.outs)
            missing |= {place for place in line.inputs if place not in values}
    for line in reversed(path):
        outs = (make or _made)(line, [values[place] for place in line.inputs])
        values |= dict(zip(line.outs, outs, strict=True)) | given
    return [values[place] for place in wanted]


def _made(line: _Line, inputs: list[Any]) -> list[Any]:
    """What one operation of a program gives, as a program of its own."""
    operation = line.operation
    named = {
        atom: value
        for atom, value in zip(operation.invars, inputs, strict=True)
        if not isinstance(atom, jax.extend.core.Literal)
    }
    alone = line.program.replace(
        constvars=[],
        invars=list(named),
        outvars=operation.outvars,
        eqns=[operation],
        effects=operation.effects,
        debug_info=line.program.debug_info.with_unknown_names(),
    )
    return jax.core.eval_jaxpr(alone, [], *named.values())


# Random bits by threefry: JAX's, to the last of them.  On the CPU JAX makes its rounds by a loop,
# which takes less time to compile, but goes over memory in every turn; written out as one
# expression they take half as long.


def is_written_out(keys: Array) -> bool:
    """Whether the bits of such keys are those that are made here."""
    return (
        jax.default_backend() == "cpu"
        and bool(getattr(jax.config, "jax_threefry_partitionable", False))
        and str(jax.random.key_impl(keys)) == THREEFRY
    )


def folded(keys: Array, data: Any) -> Array:
    """As `jax.random.fold_in`, of each key; the data broadcast against the keys."""
    return _wrapped(_of_keys(keys, jnp.asarray(data).astype(jnp.uint32)))


def _drawn(line: _Line, inputs: list[Any]) -> list[Any]:
    """What an operation gives, as `_made`."""
    written_out = _written_out(line.name, inputs[0], line.operation.params) if inputs else None
    return _made(line, inputs) if written_out is None else [written_out(*inputs)]


def _written_out(name: str, keys: Any, parameters: dict[str, Any]) -> Callable[..., Array] | None:
    """What does the same as an operation of JAX on keys, and what goes with them; None: nothing."""
    if name not in ("random_fold_in", "random_split", "random_bits") or not is_written_out(keys):
        return None
    if name == "random_fold_in":
        return folded
    shape = parameters["shape"]
    if name == "random_split":
        is_short = len(shape) == 1 and shape[0] <= MOST_PARTS
        return (lambda keys: _parts(keys, shape[0])) if is_short else None
    if parameters["bit_width"] not in (32, 64):
        return None
    return lambda keys: _bits(keys, shape, parameters["bit_width"])


def _parts(keys: Array, count: int) -> Array:
    return jnp.stack([folded(keys, part) for part in range(count)], axis=-1)


def _bits(keys: Array, shape: tuple[int, ...], width: int) -> Array:
    number = jax.lax.iota(jnp.uint32, int(np.prod(shape, dtype=np.int64))).reshape(shape)
    apart = keys.reshape(*keys.shape, *(1 for _ in shape))
    first, second = _of_keys(apart, number)
    if width == 32:
        return first ^ second
    return (first.astype(jnp.uint64) << 32) | second.astype(jnp.uint64)


def _of_keys(keys: Array, number: Array) -> tuple[Array, Array]:
    words = jax.random.key_data(keys)
    return _threefry(words[..., 0], words[..., 1], jnp.zeros_like(number), number)


def _wrapped(words: tuple[Array, Array]) -> Array:
    return jax.random.wrap_key_data(jnp.stack(words, axis=-1), impl=THREEFRY)


@partial(jax.jit, inline=True)  # traced once for each shape, and written into the program as it is
def _threefry(key_0: Any, key_1: Any, word_0: Any, word_1: Any) -> tuple[Any, Any]:
    """Two words for each two, by the twenty rounds of Threefry-2x32, see [salmon2011]."""
    keys = (key_0, key_1, key_0 ^ key_1 ^ PARITY)
    word_0, word_1 = word_0 + key_0, word_1 + key_1
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            word_0 = word_0 + word_1
            word_1 = (word_1 << rotation) | (word_1 >> (32 - rotation))
            word_1 = word_0 ^ word_1
        word_0 = word_0 + keys[(group + 1) % 3]
        word_1 = word_1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return word_0, word_1
