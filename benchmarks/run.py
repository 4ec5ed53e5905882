"""Measure every bar in one run, print them as a table and write them as JSON."""

import argparse
import json
import os
import platform
from pathlib import Path

os.environ.setdefault("JAX_ENABLE_X64", "1")

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
import samplers
import stable_accuracy
import stable_speed
from bars import Bar, line

SECTIONS = {
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
    "Matrix factorisation": factorization.matrix_factorization,
    "Belief network": belief.belief_network,
    "The double well": exactness.double_well,
    "Four modes": exactness.four_modes,
    "Heavy tails": exactness.heavy_tails,
    "Runs that check sees": check_table.table,
    "Readers": data.read_synthetic_data,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/bench.json"))
    arguments = parser.parse_args()
    results: dict[str, list[Bar]] = {}
    print(f"jax {jax.__version__}, {os.cpu_count()} cores, {platform.machine()}")
    for title, measure in SECTIONS.items():
        results[title] = measure()
        print(f"\n{title}", *(line(bar) for bar in results[title]), sep="\n", flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    rows = {title: [bar._asdict() for bar in bars] for title, bars in results.items()}
    arguments.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False))
    missed = [bar.subject for bars in results.values() for bar in bars if not bar.is_met]
    print(f"\n{len(missed)} missed; written to {arguments.out}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
