r"""What a step computes that does not depend on where the chain is, taken out of the loop.

A step's random bits depend on its key alone.  Drawn inside the loop over steps they cost a dozen
small operations each time; drawn before it, for a block of steps, they cost what the arithmetic
costs.  Bits are integers, so that doing so changes no draw by a single bit.  And what depends on
the algorithm's numbers alone, such as η^{1/α}, is computed once per call, so that numbers which are
inputs cost little more than constants.

The step is traced once.  `collect` walks through its operations and makes those that depend on keys
alone, `settle` those that depend on parameters alone, and `replay` makes the rest with both given;
the compiler drops what is not used.  JAX does not promise that its programs can be walked through:
where they cannot, the step computes all of it itself, from the same bits.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.extend.core

UNKNOWN: Any = object()
# Calls that are walked through, by their names in new and old versions, and where their program is.
NESTED = {"jit": "jaxpr", "pjit": "jaxpr", "custom_jvp_call": "call_jaxpr"}
CHEAP = ("broadcast_in_dim",)  # made again rather than kept: the result is larger

Visit = Callable[[Any, Any, list[Any]], list[Any]]


class Hoisted(NamedTuple):
    """A step in parts.

    collect: keys -> random bits.
    settle: parameters -> what depends on them alone.
    replay: (bits, settled, keys, parameters, rest) -> what the step returns.
    fixed: parameters -> leaves of what the step returns, None where they depend on more.
    """

    collect: Callable[[Any], list[Any]]
    settle: Callable[[Any], list[Any]]
    replay: Callable[[list[Any], list[Any], Any, Any, Any], Any]
    fixed: Callable[[Any], list[Any]]


def hoist(step: Callable[[Any, Any, Any], Any], keys: Any, parameters: Any, rest: Any) -> Hoisted:
    """Split `step(keys, parameters, rest)`; the other arguments are examples, for their shapes."""
    traced, shapes = jax.make_jaxpr(step, return_shape=True)(keys, parameters, rest)
    structure = jax.tree.structure(shapes)
    try:
        walked = _by_walking(traced, structure, (keys, parameters, rest))
        bits, settled = (
            jax.eval_shape(walked.collect, keys),
            jax.eval_shape(walked.settle, parameters),
        )
        jax.eval_shape(walked.replay, bits, settled, keys, parameters, rest)
        return walked
    except Exception as error:  # whatever changed in JAX
        warnings.warn(
            "Steps draw their random bits one by one, which is slower: the programs of this "
            f"version of JAX ({jax.__version__}) have another form ({error!r}).",
            stacklevel=2,
        )
    return Hoisted(
        lambda keys: [],
        lambda parameters: [],
        lambda bits, settled, keys, parameters, rest: step(keys, parameters, rest),
        lambda parameters: [None] * len(jax.tree.leaves(shapes)),
    )


class _Settled(NamedTuple):
    """A value that depends on parameters."""

    value: Any


def _by_walking(traced: Any, structure: Any, examples: tuple[Any, Any, Any]) -> Hoisted:
    _, num_parameters, num_rest = (len(jax.tree.leaves(part)) for part in examples)
    is_drawn: list[bool] = []  # for each draw of random bits
    num_settled: list[int] = []  # for each operation

    def collect(keys: Any) -> list[Any]:
        bits: list[Any] = []

        def visit(program: Any, operation: Any, inputs: list[Any]) -> list[Any]:
            outs = _known(program, operation, inputs)
            if operation.primitive.name == "random_bits":
                bits.append(outs[0])
            return outs

        _walk(traced, [keys, *[UNKNOWN] * (num_parameters + num_rest)], visit)
        is_drawn[:] = [value is not UNKNOWN for value in bits]
        return [value for value in bits if value is not UNKNOWN]

    def settle_all(parameters: Any) -> tuple[list[Any], list[Any]]:
        settled: list[Any] = []
        num_settled.clear()

        def visit(program: Any, operation: Any, inputs: list[Any]) -> list[Any]:
            outs = _known(program, operation, [_bare(value) for value in inputs])
            is_settled = outs[:1] != [UNKNOWN] and any(isinstance(v, _Settled) for v in inputs)
            is_kept = is_settled and operation.primitive.name not in CHEAP
            settled.extend(outs if is_kept else [])
            num_settled.append(len(outs) if is_kept else 0)
            return [_Settled(out) for out in outs] if is_settled else outs

        given = [_Settled(leaf) for leaf in jax.tree.leaves(parameters)]
        return settled, _walk(traced, [UNKNOWN, *given, *[UNKNOWN] * num_rest], visit)

    def replay(bits: list[Any], settled: list[Any], keys: Any, parameters: Any, rest: Any) -> Any:
        drawn, was_drawn = iter(bits), iter(is_drawn)
        known, counts = iter(settled), iter(num_settled)

        def visit(program: Any, operation: Any, inputs: list[Any]) -> list[Any]:
            count = next(counts)
            if operation.primitive.name == "random_bits" and next(was_drawn):
                return [next(drawn)]
            return [next(known) for _ in range(count)] or _bind(program, operation, inputs)

        arguments = [keys, *jax.tree.leaves(parameters), *jax.tree.leaves(rest)]
        return jax.tree.unflatten(structure, _walk(traced, arguments, visit))

    def fixed(parameters: Any) -> list[Any]:
        _, outs = settle_all(parameters)
        return [None if value is UNKNOWN else _bare(value) for value in outs]

    return Hoisted(collect, lambda parameters: settle_all(parameters)[0], replay, fixed)


def _bare(value: Any) -> Any:
    return value.value if isinstance(value, _Settled) else value


def _walk(traced: Any, arguments: list[Any], visit: Visit) -> list[Any]:
    """Visit a program's operations in their order, with the values that are known of them."""
    values: dict[Any, Any] = dict(zip(traced.jaxpr.constvars, traced.consts, strict=True))
    values |= dict(zip(traced.jaxpr.invars, arguments, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, jax.extend.core.Literal) else values[atom]

    for operation in traced.jaxpr.eqns:
        inputs = [read(atom) for atom in operation.invars]
        inner = NESTED.get(operation.primitive.name)
        if inner is not None:
            outs = _walk(operation.params[inner], inputs, visit)
        else:
            outs = visit(traced.jaxpr, operation, inputs)
        values |= dict(zip(operation.outvars, outs, strict=True))
    return [read(atom) for atom in traced.jaxpr.outvars]


def _known(program: Any, operation: Any, inputs: list[Any]) -> list[Any]:
    """What an operation gives, where all that it needs is known."""
    if any(value is UNKNOWN for value in inputs):
        return [UNKNOWN] * len(operation.outvars)
    return _bind(program, operation, inputs)


def _bind(program: Any, operation: Any, inputs: list[Any]) -> list[Any]:
    """Make one operation of a program, as a program of its own."""
    named = {
        atom: value
        for atom, value in zip(operation.invars, inputs, strict=True)
        if not isinstance(atom, jax.extend.core.Literal)
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
