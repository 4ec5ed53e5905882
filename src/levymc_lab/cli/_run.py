"""``levymc run``: experiments one after the other, with a bar and a table of checks."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from typer import Argument, Option

from ._shared import Exit, Force, Seed, bar, command_line, grid, guarded, keep_programs, times

if TYPE_CHECKING:
    from levymc_lab.framework import Cluster, Experiment, Results

EXAMPLES = """
**Examples**

- `levymc run stable-laws`
- `levymc run stable-laws --profile paper --out results --seed 1 --jobs 2`
- `levymc run all --force`
- `levymc run contest --cluster local --jobs 8`
- `levymc run all --cluster tcp://10.0.0.1:8786`

**Exit codes**: 0 fine; 1 a check failed; 2 bad input; 3 a folder cannot be read or written;
4 a fault of the program; 130 stopped by Ctrl-C.
"""
MARKS = {
    "pass": "[green]✓ pass[/]",
    "explained": "[yellow]✗ missed, explained[/]",
    "fail": "[red]✗ FAIL[/]",
}
SPEED_WINDOW = 3600.0  # seconds; a cell may take minutes


def _beginning(incomplete: str) -> list[str]:
    """What the tab key completes."""
    from levymc_lab import framework

    return [name for name in ("all", *framework.names()) if name.startswith(incomplete)]


def run(
    names: Annotated[
        list[str],
        Argument(
            metavar="NAME", help="Name the experiments to run, or all.", autocompletion=_beginning
        ),
    ],
    profile: Annotated[
        str, Option(help="The profile quick takes seconds to minutes; paper has the paper's sizes.")
    ] = "quick",
    out: Annotated[Path, Option(help="Results go into this folder.")] = Path("results"),
    seed: Seed = 0,
    jobs: Annotated[
        int, Option(min=0, help="Run this many processes of one thread each; 0 uses this one.")
    ] = 1,
    cluster: Annotated[
        str | None,
        Option(
            metavar="local|ADDRESS",
            help="Let Dask share out the work: to --jobs processes of this machine, or to the "
            "workers of the scheduler at ADDRESS.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Run experiments, or go on with what is missing of them.

    Results go to OUT/NAME, and a page on all of them to OUT/index.html, also when you stop with
    Ctrl-C, whenever you like: the same command goes on. An experiment that fails does not keep the
    others from being run. What is there is not written over unless you give --force.
    """
    from levymc_lab import framework
    from levymc_lab.report import write_page

    resume = command_line(
        "run", *names, profile=profile, out=out, seed=seed, jobs=jobs, cluster=cluster
    )
    keep_programs()
    with guarded(resume):
        chosen = _choose(names)
        for one in chosen:  # none will be refused after another has run
            framework.preflight(one, out, profile=profile, seed=seed, force=force)
        _tell_of_changes()
    has_failed = False
    broken: dict[str, int] = {}
    with _connected(cluster, jobs, resume) as workers:
        for one in chosen:
            with (
                _recorded(one.name, broken),
                guarded(resume, framework.MismatchError),
                _page_if_stopped(out),
                _bar(one.name) as report,
            ):
                results = framework.run(
                    one,
                    out,
                    profile=profile,
                    seed=seed,
                    jobs=jobs,
                    force=force,
                    cluster=workers,
                    on_progress=report,
                )
                _show(results)
                has_failed |= results.has_failed
    if broken:
        _end_broken(out, broken, len(chosen))
    with guarded(resume, framework.MismatchError):
        print(f"Page: {write_page(out)}")
    raise typer.Exit(int(Exit.CHECK_FAILED if has_failed else Exit.FINE))


@contextmanager
def _recorded(name: str, broken: dict[str, int]) -> Iterator[None]:
    """Let the others be run where one ends with an error; Ctrl-C ends all."""
    try:
        yield
    except typer.Exit as error:
        if error.exit_code == Exit.INTERRUPTED:
            raise
        broken[name] = error.exit_code


def _end_broken(out: Path, broken: dict[str, int], num_chosen: int) -> NoReturn:
    """Write the page on what there is, and end with the code of the first that broke."""
    _write_page_if_can(out)
    if num_chosen > 1:
        print(f"levymc: not finished: {', '.join(broken)}; see above.", file=sys.stderr)
    raise typer.Exit(next(iter(broken.values())))


@contextmanager
def _connected(address: str | None, jobs: int, resume: str) -> "Iterator[Cluster | None]":
    """The cluster that was asked for, and a line with the address of its page."""
    from levymc_lab import framework

    if address is None:
        yield None
        return
    with ExitStack() as stack:
        with guarded(resume):
            workers = stack.enter_context(framework.connect(address, jobs))
            print(f"Dashboard: {workers.dashboard}", flush=True)
        yield workers


def _tell_of_changes() -> None:
    """Before hours are spent on results that nobody can make again."""
    from levymc._workdir import git_state

    state = git_state()
    if state and state["dirty"]:
        print(
            f"The source has changes since revision {state['revision'][:12]} that are not "
            "committed: results will be marked so. Commit them first where a revision is to be "
            "named.",
            flush=True,
        )


def _choose(names: list[str]) -> "list[Experiment]":
    from levymc_lab import framework

    wanted = framework.names() if "all" in names else dict.fromkeys(names)
    return [framework.get(name) for name in wanted]


@contextmanager
def _page_if_stopped(out: Path) -> Iterator[None]:
    """After Ctrl-C, too, leave a page on what is there; a second Ctrl-C does without."""
    try:
        yield
    except KeyboardInterrupt:
        _write_page_if_can(out)
        raise


def _write_page_if_can(out: Path) -> None:
    from levymc_lab.framework import ResultsError
    from levymc_lab.report import write_page

    with suppress(ResultsError, OSError):  # nothing is there yet, or nothing can be written
        print(f"Page: {write_page(out)}")


@contextmanager
def _bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """A bar over the cells."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), rate, *times())
    with bar(*columns, speed_estimate_period=SPEED_WINDOW) as progress:
        cells = progress.add_task(name, total=None, rate="")

        def report(done: int, total: int) -> None:
            task = progress.tasks[0]
            if task.total is None:  # the speed has nothing to do with what an earlier run made
                progress.reset(cells, total=total, completed=done)
            progress.update(cells, completed=done, rate=_rate(task.speed))

        yield report


def _rate(speed: float | None) -> str:
    if not speed:
        return ""
    return f"{speed:.1f} cells/s" if speed >= 1 else f"{60 * speed:.1f} cells/min"


def _show(results: "Results") -> None:
    """Checks, the reasons of those that do not hold, the verdict, and where the rest is."""
    from rich.console import Console
    from rich.markup import escape

    console, manifest = Console(), results.manifest
    title = f"{manifest['name']} ({manifest['paper_item']}, {manifest['profile']})"
    table = grid(title=title, title_justify="left", title_style="bold")
    table.add_column("check", overflow="fold")
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("expected", no_wrap=True)
    table.add_column("outcome", min_width=len("✗ missed,"))
    for check in results.checks:
        mark = MARKS[check.outcome]
        table.add_row(escape(check.name), f"{check.measured:.4g}", check.expected, mark)
    console.print(table)
    for check in results.checks:
        if not check.holds:
            console.print(f"{escape(check.name)}: {escape(check.explanation or check.reason)}")
    console.print(f"[bold]{results.verdict.kind.capitalize()}.[/] {escape(results.verdict.words)}")
    seconds = manifest["wall_seconds"]
    console.print(f"{results.folder}  ({seconds:,.1f} s)", style="dim", markup=False)
