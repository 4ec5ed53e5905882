"""Progress in a terminal: of chains, with rate and divergences; of stages, with what is left."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int], None]


@contextmanager
def progress_bar(num_steps: int, num_chains: int, counted: str = "divergences") -> Iterator[Report]:
    """Give a function to call with the steps and what is `counted` since the last call.

    Without Rich a line is all that is shown.
    """
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ModuleNotFoundError:
        if sys.stderr.isatty():
            print(
                f"{num_chains} chains … (pip install 'levymc[progress]' for a bar)", file=sys.stderr
            )
        yield lambda steps, divergent: None
        return
    console = Console(stderr=True)
    columns = (
        TextColumn(f"{num_chains} chain{'s' * (num_chains > 1)}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    # Four times a second: drawing it ten times, as is usual, costs a core some 2 %.
    shown = Progress(
        *columns, console=console, disable=not console.is_terminal, refresh_per_second=4
    )
    with shown as bar:
        task = bar.add_task("", total=num_steps, rate="", note="compiling …")
        divergences = 0

        def report(steps: int, divergent: int) -> None:
            nonlocal divergences
            divergences += divergent
            speed = bar.tasks[0].speed
            rate = "" if speed is None else f"{speed * num_chains:,.0f} steps/s"
            note = f"{divergences} {counted}" if divergences else ""
            bar.update(task, advance=steps, rate=rate, note=note)

        yield report


Tell = Callable[[str, int, str], None]


@contextmanager
def stage_bar(total: int, *, progress: bool) -> Iterator[Tell]:
    """Give a function to call with a stage, what was spent of the total, and a note.

    Nothing is shown without a terminal, or without Rich.
    """
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
    except ModuleNotFoundError:
        progress = False
    if not progress or not sys.stderr.isatty():
        yield lambda stage, spent, note: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[left]} evaluations left  {task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=4) as bar:
        task = bar.add_task("exploring", total=total, left=f"{total:,}", note="compiling …")

        def tell(stage: str, spent: int, note: str) -> None:
            left = f"{max(total - spent, 0):,}"
            bar.update(task, completed=spent, description=stage, left=left, note=note)

        yield tell
