"""A progress bar across chains: rate, time left, divergences so far."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bar(
    wanted: bool, num_steps: int, num_chains: int
) -> Iterator[Callable[[int, int], None]]:
    """Give a function to call with the steps and the divergences since the last call.

    Nothing is shown where the output is no terminal.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn(f"{num_chains} chains"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    is_shown = wanted and console.is_terminal
    # Four times a second: drawing it ten times, as is usual, costs a core some 2 %.
    shown = Progress(*columns, console=console, disable=not is_shown, refresh_per_second=4)
    with shown as bar:
        task = bar.add_task("", total=num_steps, rate="", note="")
        divergences = 0

        def report(steps: int, divergent: int) -> None:
            nonlocal divergences
            divergences += divergent
            speed = bar.tasks[0].speed
            rate = "" if speed is None else f"{speed * num_chains:,.0f} steps/s"
            note = f"{divergences} divergences" if divergences else ""
            bar.update(task, advance=steps, rate=rate, note=note)

        yield report
