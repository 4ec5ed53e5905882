r"""Random bits drawn for many steps at once.

A step's random bits depend on its key alone, not on where the chain is.  Drawn inside the loop over
steps they cost a dozen small operations each time; drawn before it, for a block of steps, they cost
what the arithmetic costs.  Bits are integers, so that doing so changes no draw by a single bit.

The step is traced once.  `collect` walks through its operations and makes those that depend on keys
alone, `replay` walks through them again with the bits given; the compiler drops what is not used.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

Step = Callable[[Any, Any], Any]
UNKNOWN: Any = object()
NESTED = ("jit", "pjit")  # calls that are walked through, by their names in new and old versions


def hoist_bits(step: Step, keys: Any, states: Any) -> tuple[Callable[[Any], Any], Callable]:
    """Split `step(keys, states)` into `collect(keys)` and `replay(bits, keys, states)`.

    `keys` and `states` are examples, for their shapes.
    """
    traced, shapes = jax.make_jaxpr(step, return_shape=True)(keys, states)
    structure = jax.tree.structure(shapes)
    num_unknown = len(jax.tree.leaves(states))
    drawn: list[bool] = []

    def collect(keys: Any) -> list[Any]:
        bits: list[Any] = []
        _walk(traced, [keys, *[UNKNOWN] * num_unknown], bits.append, iter(()))
        drawn[:] = [value is not UNKNOWN for value in bits]
        return [value for value in bits if value is not UNKNOWN]

    jax.eval_shape(collect, keys)

    def replay(bits: list[Any], keys: Any, states: Any) -> Any:
        given, was_drawn = iter(bits), iter(drawn)
        replacements = (next(given) if known else None for known in was_drawn)
        outs = _walk(traced, [keys, *jax.tree.leaves(states)], None, replacements)
        return jax.tree.unflatten(structure, outs)

    return collect, replay


def _walk(
    traced: ClosedJaxpr,
    arguments: list[Any],
    record: Callable[[Any], None] | None,
    replacements: Iterator[Any],
) -> list[Any]:
    """Make a program's operations, recording the random bits, or with them replaced."""
    values: dict[Any, Any] = dict(zip(traced.jaxpr.constvars, traced.consts, strict=True))
    values |= dict(zip(traced.jaxpr.invars, arguments, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for operation in traced.jaxpr.eqns:
        inputs = [read(atom) for atom in operation.invars]
        is_draw = operation.primitive.name == "random_bits"
        replacement = next(replacements) if is_draw and record is None else None
        if replacement is not None:
            outs = [replacement]
        elif operation.primitive.name in NESTED:
            outs = _walk(operation.params["jaxpr"], inputs, record, replacements)
        elif any(value is UNKNOWN for value in inputs):
            outs = [UNKNOWN] * len(operation.outvars)
        else:
            outs = _bind(traced.jaxpr, operation, inputs)
        if is_draw and record is not None:
            record(outs[0])
        values |= dict(zip(operation.outvars, outs, strict=True))
    return [read(atom) for atom in traced.jaxpr.outvars]


def _bind(program: Jaxpr, operation: Any, inputs: list[Any]) -> list[Any]:
    """Make one operation of a program, as a program of its own."""
    named = {
        atom: value
        for atom, value in zip(operation.invars, inputs, strict=True)
        if not isinstance(atom, Literal)
    }
    alone = program.replace(
        constvars=[],
        invars=list(named),
        outvars=operation.outvars,
        eqns=[operation],
        effects=operation.effects,
        debug_info=program.debug_info.with_unknown_names(),
    )
    return jax.core.eval_jaxpr(alone, [], *named.values())
