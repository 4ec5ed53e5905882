"""Measure every bar in one run: print each as it is measured, and write them as JSON.

    python benchmarks/run.py              # all of them
    python benchmarks/run.py "The law"    # the sections whose titles begin so

A section that fails is a bar that is missed; the others are measured all the same.
"""

import argparse
import json
import os
import platform
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

os.environ.setdefault("JAX_ENABLE_X64", "1")

import auto_time
import belief
import check_table
import data
import drifts
import engine
import euler_rate
import exactness
import factorization
import first_draw
import house
import jax
import ratings_time
import samplers
import stable_accuracy
import stable_speed
from bars import Bar, count, show

SECTIONS: dict[str, Callable[[], Iterable[Bar]]] = {
    "The house": house.house,
    "Draws of the stable law": stable_speed.draws,
    "The law: speed": stable_speed.law,
    "The law: pairs": stable_speed.pairs,
    "The law: accuracy": stable_accuracy.worst_errors,
    "Drifts: accuracy": drifts.accuracy,
    "The paper's Table 1": drifts.table_1,
    "Drifts: speed": drifts.vectorised,
    "Euler's rate": euler_rate.rates,
    "Runs: speed": samplers.sampler_speed,
    "Runs: other loops": engine.loops,
    "Runs: first draws in a new process": first_draw.repeated_runs,
    "Runs: the time of auto": auto_time.auto_time,
    "Matrix factorisation": factorization.matrix_factorization,
    "Ratings: SGLD against Gibbs": ratings_time.against_gibbs,
    "Belief network": belief.belief_network,
    "The double well": exactness.double_well,
    "Four modes": exactness.four_modes,
    "Heavy tails": exactness.heavy_tails,
    "Runs that check sees": check_table.table,
    "Readers": data.read_synthetic_data,
}


def measured(measure: Callable[[], Iterable[Bar]]) -> Iterator[Bar]:
    """The bars of a section; where it fails, one more that is not met."""
    try:
        yield from measure()
    except Exception:
        traceback.print_exc()
        yield Bar("FAILED: what went wrong is above", 1, "", 0)


def as_row(bar: Bar) -> dict[str, object]:
    """For JSON, which has no NaN."""
    return {**bar._asdict(), "measured": None if bar.absent else bar.measured}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("titles", nargs="*", default=[""], help="of sections, or how they begin")
    parser.add_argument("--out", type=Path, default=Path("build/bench.json"))
    arguments = parser.parse_args()
    results: dict[str, list[Bar]] = {}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    print(f"jax {jax.__version__}, {os.cpu_count()} cores, {platform.machine()}", flush=True)
    for title in (one for one in SECTIONS if one.startswith(tuple(arguments.titles))):
        print(f"\n{title}", flush=True)
        since = time.perf_counter()
        results[title] = show(measured(SECTIONS[title]))
        jax.clear_caches()  # or a process would end with some gigabytes of programs
        print(f"  ({count(results[title])}; {time.perf_counter() - since:.0f} s)", flush=True)
        rows = {name: [as_row(bar) for bar in bars] for name, bars in results.items()}
        arguments.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False))
    every = [bar for bars in results.values() for bar in bars]
    missed = [bar for bar in every if not bar.is_met]
    spent = time.perf_counter() - begin
    print(f"\n{count(every)}, in {spent / 60:.1f} minutes; written to {arguments.out}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
