"""``levymc run``: experiments one after the other, with a bar and a table of checks."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ._exit import Exit, guarded
from ._show import show_results

if TYPE_CHECKING:
    from levymc_lab.framework import Experiment

SPEED_WINDOW = 3600.0  # seconds; a cell may take minutes


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    names: list[str]
    profile: str
    out: Path
    seed: int
    jobs: int
    force: bool

    @property
    def resume(self) -> str:
        """The command that goes on; without --force, which would start anew."""
        words = ["levymc", "run", *self.names, "--profile", self.profile, "--out", str(self.out)]
        return shlex.join([*words, "--seed", str(self.seed), "--jobs", str(self.jobs)])


def run_all(request: Request) -> Exit:
    """Run them, having first made sure that none will be refused; the worst outcome counts."""
    from levymc_lab import framework as experiments
    from levymc_lab.report import write_page

    with guarded(request.resume, ValueError):
        chosen = _choose(request.names)
        for experiment in chosen:
            experiments.preflight(
                experiment,
                request.out,
                profile=request.profile,
                seed=request.seed,
                force=request.force,
            )
    has_failed = False
    for experiment in chosen:
        with (
            guarded(request.resume, experiments.MismatchError),
            _page_if_stopped(request.out),
            _bar(experiment.name) as report,
        ):
            results = experiments.run(
                experiment,
                request.out,
                profile=request.profile,
                seed=request.seed,
                jobs=request.jobs,
                force=request.force,
                on_progress=report,
            )
        show_results(results)
        has_failed |= results.has_failed
    with guarded(request.resume, experiments.MismatchError):
        print(f"Page: {write_page(request.out)}")
    return Exit.CHECK_FAILED if has_failed else Exit.FINE


def _choose(names: list[str]) -> "list[Experiment]":
    from levymc_lab import framework as experiments

    wanted = experiments.names() if "all" in names else dict.fromkeys(names)
    return [experiments.get(name) for name in wanted]


@contextmanager
def _page_if_stopped(out: Path) -> Iterator[None]:
    """After Ctrl-C, too, leave a page on what is there; a second Ctrl-C does without."""
    from levymc_lab.framework import ResultsError
    from levymc_lab.report import write_page

    try:
        yield
    except KeyboardInterrupt:
        with suppress(ResultsError, OSError):  # nothing is there yet, or nothing can be written
            print(f"Page: {write_page(out)}")
        raise


@contextmanager
def _bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """A bar over the cells on stderr; nothing is shown where that is no terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn(name),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns,
        console=console,
        disable=not console.is_terminal,
        speed_estimate_period=SPEED_WINDOW,
    ) as progress:
        bar = progress.add_task(name, total=None, rate="")

        def report(done: int, total: int) -> None:
            task = progress.tasks[0]
            if task.total is None:  # what an earlier run made says nothing about the speed
                progress.reset(bar, total=total, completed=done)
            progress.update(bar, completed=done, rate=_rate(task))

        yield report


def _rate(task: Task) -> str:
    if not task.speed:
        return ""
    fast = task.speed >= 1
    return f"{task.speed:.1f} cells/s" if fast else f"{60 * task.speed:.1f} cells/min"
