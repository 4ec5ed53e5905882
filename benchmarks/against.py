"""The kernels of this checkout against those of another, by the processor's time, in turns.

Each checkout has a process of its own, bound to one core, that makes some steps whenever it is
asked to and tells the time that they took.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from bars import Bar

SERVE = "--serve"
HERE = Path(__file__).parents[1]


def serve(run: Callable[[], object]) -> None:
    """Answer every line of input with the seconds that a run takes."""
    run()
    for _ in sys.stdin:
        begin = time.process_time()
        run()
        print(time.process_time() - begin, flush=True)


def compare(script: str, argument: str, subject: str, other: Path, rounds: int = 15) -> list[Bar]:
    """How many times as fast this checkout is: the median over rounds and by the best of each.

    Args:
        script: the benchmark, which is called with SERVE and `argument`.
        subject: what is measured, for the table.
        other: the folder of the other checkout; its own kernels are used, or compiled at first.
    """
    with contextlib.ExitStack() as stack:
        new, old = (stack.enter_context(_start(script, argument, home)) for home in (HERE, other))
        pairs = [(_ask(new), _ask(old)) for _ in range(rounds + 1)][1:]
        for process in (new, old):
            _pipe(process.stdin).close()
    best = min(b for _, b in pairs) / min(a for a, _ in pairs)
    median = statistics.median(b / a for a, b in pairs)
    return [
        Bar(f"  before / now, {subject}, median", median, "×"),
        Bar(f"  before / now, {subject}, best", best, "×"),
    ]


def _start(script: str, argument: str, checkout: Path) -> subprocess.Popen[str]:
    path = os.pathsep.join(
        str(folder) for folder in (checkout.resolve() / "src", HERE / "benchmarks")
    )
    command = [sys.executable, script, SERVE, argument]
    if sys.platform == "linux":
        command = ["taskset", "-c", str(max(os.sched_getaffinity(0))), *command]
    environment = {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )


def _ask(process: subprocess.Popen[str]) -> float:
    _pipe(process.stdin).write("\n")
    _pipe(process.stdin).flush()
    return float(_pipe(process.stdout).readline())


def _pipe(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise RuntimeError("The process has no such pipe.")
    return stream
