"""Try to break levymc at random, from a seed: `make fuzz`, or `python -m tests.fuzz --help`.

Prints tries and failures of each section, and with each failure the command that repeats it; ends
with 1 if there are any.
"""

import argparse
import functools
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

# What is compiled here runs once, for a moment; see conftest.py.
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_backend_optimization_level=0"
    " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)

# Tries, and failures with the numbers of their cases; None where only all of them can be repeated.
Outcome = tuple[Counter, list[tuple[int, str]] | list[tuple[None, str]]]
Section = Callable[[int, int, int], Outcome]  # of (count, seed, first)
COUNTS = {"samples": 300, "stores": 500, "files": 1000}


def samples(count: int, seed: int, first: int) -> Outcome:
    from tests.fuzz import samples

    return samples.fuzz(count, seed, first)


def stores(count: int, seed: int, first: int) -> Outcome:
    from tests.fuzz import stores

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of versions, in stores that were edited
        return stores.fuzz(count, seed, first)


def files(count: int, seed: int, first: int) -> Outcome:
    """All from the first on, as one follows from the other; of a failure the content is shown."""
    from tests.lab import malformed

    with tempfile.TemporaryDirectory() as folder:
        tries, failures = malformed.fuzz(Path(folder), first + count, seed)
    return tries, [(None, failure) for failure in failures]


SECTIONS: dict[str, Section] = {"samples": samples, "stores": stores, "files": files}


def main() -> int:
    given = _arguments()
    failed = 0
    for name in [given.section] if given.section else SECTIONS:
        count = COUNTS[name] if given.count is None else given.count
        section = functools.partial(SECTIONS[name], count, given.seed, given.first)
        failed += _report(name, section, given.seed)
    return int(failed > 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("section", nargs="?", choices=SECTIONS, help="all, if not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--count", type=int, help=f"cases of each section; {COUNTS} if not given")
    return parser.parse_args()


def _report(name: str, section: Callable[[], Outcome], seed: int) -> int:
    """Run a section and print what came of it; how many failures there were."""
    began = time.perf_counter()
    tries, failures = section()
    by_kind = ", ".join(f"{kind} {count}" for kind, count in sorted(tries.items()))
    seconds = time.perf_counter() - began
    print(
        f"{name}: {tries.total()} tries, {len(failures)} failures, {seconds:.0f} s ({by_kind})",
        flush=True,
    )
    for number, failure in failures:
        one = "" if number is None else f" --first {number} --count 1"
        print(f"  {failure}\n    python -m tests.fuzz {name} --seed {seed}{one}", flush=True)
    return len(failures)


if __name__ == "__main__":
    sys.exit(main())
