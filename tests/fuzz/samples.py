"""Random uses of `levymc.sample`, and what may come of them.

There are two outcomes: draws that are all right, or a refusal of ours, which names the argument,
the value and a remedy.  Steps that were not made are flagged, and a warning of ours reports them.
"""

import contextlib
import random
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from tests.fuzz.faults import Fault, draw_fault
from tests.fuzz.setups import KINDS, Setup, draw_arguments, draw_options, draw_setup

import levymc
from levymc.algorithms import Info
from levymc.run import _engine

REFUSAL = re.compile(r"^`[^`]+` must .+, got .+[.:] .+[.)]$", re.DOTALL)
WARNINGS = re.compile(
    r"draws had a step that .* was not made|drift is in doubt|`minibatches` ended after"
)
TRIES_PER_SETUP = 5
FORGET_AFTER = 25  # setups
FAULT_RATE = 0.3  # of the tries: they are quick, as most are refused before anything is compiled


class Outcome(NamedTuple):
    """Tries by what came of them, and what went wrong, with the numbers of the setups."""

    tries: Counter
    failures: list[tuple[int, str]]


def fuzz(count: int, seed: int = 0, first: int = 0) -> Outcome:
    """Make `count` setups and try each with several numbers."""
    tries: Counter = Counter()
    failures: list[tuple[int, str]] = []
    for number in range(first, first + count):
        for came, wrong in try_setup(seed, number):
            tries[came] += 1
            failures += [(number, wrong)] if wrong else []
    return Outcome(tries, failures)


def forget() -> None:
    """Let go of compiled programs, which would fill the memory."""
    _engine.compile_init.cache_clear()
    _engine.compile_program.cache_clear()
    jax.clear_caches()


def setups(seed: int, count: int) -> list[Setup]:
    """Those that are tried."""
    return [draw_setup(_source(seed, number)) for number in range(count)]


def _source(seed: int, number: int) -> random.Random:
    return random.Random(f"{seed}/{number}")


def try_setup(seed: int, number: int) -> Iterator[tuple[str, str | None]]:
    """What came of each try, and what is wrong with that, if anything is."""
    source = _source(seed, number)
    setup = draw_setup(source)
    if number % FORGET_AFTER == 0:
        forget()
    with jax.enable_x64(setup.is_wide):
        for _ in range(TRIES_PER_SETUP):
            fault = draw_fault(source, setup) if source.random() < FAULT_RATE else None
            came, wrong = attempt(source, setup, fault)
            put_in = f" [{fault}]" if fault else ""
            yield came, f"{wrong}{put_in} in {setup}" if wrong else None


def attempt(source: random.Random, setup: Setup, fault: Fault | None) -> tuple[str, str | None]:
    """Sample once; all that is drawn is drawn before."""
    count = setup.num_chains if setup.is_sweep else 1
    options = [draw_options(source, setup) for _ in range(count)]
    arguments = draw_arguments(source, setup)
    must_fail = fault is not None or not _starts_inside(setup, arguments["initial_positions"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = sample(setup, options, arguments, fault)
        except Exception as error:
            return "refused", _wrong_error(error)
    if must_fail:
        return "sampled", "what is wrong was taken for right"
    starts = arguments["initial_positions"]
    messages = [warning.message for warning in caught]
    return "sampled", "; ".join(_wrong_result(setup, starts, arguments, result, messages)) or None


def sample(
    setup: Setup, options: list[dict[str, Any]], arguments: dict[str, Any], fault: Fault | None
) -> levymc.Result:
    kind, target = KINDS[setup.kind], setup.target
    wrong = {fault.argument: fault.value} if fault else {}
    made = []
    for each in options:
        given = {name: value for name, value in (each | wrong).items() if name in kind.options}
        given |= {name: value for name, value in wrong.items() if name == "drift"}
        made.append(kind.make(wrong.get("target", target), **given))
    algorithm = wrong.get("algorithm", made if setup.is_sweep else made[0])
    used = arguments | {name: value for name, value in wrong.items() if name in arguments}
    return levymc.sample(algorithm, progress=False, **used)


def _starts_inside(setup: Setup, starts: Any) -> bool:
    if not KINDS[setup.kind].knows_density:
        return True
    return bool(np.all(np.isfinite(setup.target.of_draws(starts, num_axes=1))))


# What may come of it.


def _wrong_error(error: Exception) -> str | None:
    is_ours = type(error) in (TypeError, ValueError) and REFUSAL.match(str(error))
    return None if is_ours else f"{type(error).__name__}: {str(error)[:300]}"


def _wrong_result(
    setup: Setup,
    starts: Any,
    arguments: dict[str, Any],
    result: levymc.Result,
    messages: list[Any],
) -> Iterator[str]:
    """All that is wrong with draws."""
    counts = (setup.num_chains, len(result.steps))
    flagged = np.asarray(result.info.is_divergent)
    yield from _wrong_warnings(messages, result)
    if result.weights.shape != counts or not np.all(
        np.isfinite(result.weights) & (result.weights > 0)
    ):
        yield f"weights {result.weights!r:.100}"
    yield from _wrong_info(result.info, counts, flagged)
    if (arguments["keep"] is None and setup.observe == "nothing") or arguments["keep"] is True:
        yield from _wrong_positions(setup, starts, counts, result)
        if arguments["burn_in"] == 0 and setup.thin == "every" and not result.is_exact:
            yield from _unflagged_stays(starts, result, flagged)
        yield from _wrong_summaries(result)


def _wrong_warnings(messages: list[Any], result: levymc.Result) -> Iterator[str]:
    for message in messages:
        if type(message) is not UserWarning or not WARNINGS.search(str(message)):
            yield f"{type(message).__name__}: {message}"
    is_told = any("was not made" in str(message) for message in messages)
    if is_told != (result.num_divergent > 0 and not result.is_exact):
        yield f"{result.num_divergent} divergent, but is it reported? {is_told}"


def _wrong_info(info: Info, counts: tuple[int, int], flagged: np.ndarray) -> Iterator[str]:
    for name, values in info._asdict().items():
        if values is None:
            continue
        values = np.asarray(values)
        if values.shape != counts:
            yield f"info.{name} has shape {values.shape}, not {counts}"
        elif not np.all(_is_known(name, values) | flagged):
            yield f"info.{name} is not finite, and not flagged"
    for name in ("acceptance_rate", "taming"):
        values = np.asarray(getattr(info, name), float)
        if np.any((values < 0) | (values > 1)):
            yield f"info.{name} is not in [0, 1]"
    if info.is_outside is not None and np.any(info.is_outside & ~flagged):
        yield "outside, but not divergent"


def _is_known(name: str, values: np.ndarray) -> np.ndarray:
    """Finite; an infinite error of a drift is a flag itself, of which a warning tells."""
    return ~np.isnan(values) if name == "drift_error" else np.isfinite(values)


def _wrong_positions(
    setup: Setup, starts: Any, counts: tuple[int, int], result: levymc.Result
) -> Iterator[str]:
    if jax.tree.structure(result.positions) != jax.tree.structure(starts):
        yield "positions of another structure"
        return
    for draws, start in _leaves(result, starts):
        if draws.shape != (*counts, *start.shape[1:]):
            yield f"positions of shape {draws.shape}"
        if draws.dtype != jax.dtypes.canonicalize_dtype(start.dtype):
            yield f"positions of {draws.dtype} for {start.dtype}"
        if not np.all(np.isfinite(draws)):
            yield "positions that are not finite"
    if KINDS[setup.kind].knows_density:
        values = setup.target.of_draws(result.positions)
        if not np.all(np.isfinite(values)):
            yield f"log φ of draws is {values[~np.isfinite(values)][0]}"


def _leaves(result: levymc.Result, starts: Any) -> Iterator[tuple[Any, Any]]:
    return zip(jax.tree.leaves(result.positions), jax.tree.leaves(starts), strict=True)


def _unflagged_stays(starts: Any, result: levymc.Result, flagged: np.ndarray) -> Iterator[str]:
    """A chain that stayed where it was, though its noise could be seen, and nobody said so."""
    largest = np.asarray(result.info.largest_jump, float)
    stayed, seen = np.ones(flagged.shape, bool), np.zeros(flagged.shape, bool)
    for draws, start in _leaves(result, starts):
        path = np.concatenate([start[:, None].astype(draws.dtype), draws], axis=1).astype(float)
        path = path.reshape(*path.shape[:2], -1)
        stayed &= np.all(path[:, 1:] == path[:, :-1], axis=-1)
        precision = 8 * float(jax.numpy.finfo(draws.dtype).eps)
        seen |= largest > precision * np.max(np.abs(path[:, :-1]), axis=-1, initial=1e-30)
    if np.any(stayed & seen & ~flagged):
        yield "a step was not made and not flagged"


def _wrong_summaries(result: levymc.Result) -> Iterator[str]:
    """They are made of the draws, which are finite; some sums may overflow all the same."""
    sizes = [np.max(np.abs(leaf), initial=0) for leaf in jax.tree.leaves(result.positions)]
    if max(map(float, sizes)) > 1e3:
        return
    for name, summary in result.observed.items():
        if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(summary)):
            yield f"observed {name} is not finite"
    with contextlib.suppress(TypeError):
        repr(result)
