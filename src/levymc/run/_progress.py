"""Progress in a terminal: of chains, with rate and divergences; of stages, with what is left."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jax.monitoring

if TYPE_CHECKING:
    from rich.progress import TextColumn

Report = Callable[[int, int], None]

# What JAX reports just before XLA compiles a program, and just after.
BEFORE = "/jax/core/compile/jaxpr_to_mlir_module_duration"
AFTER = "/jax/core/compile/backend_compile_duration"


class _Compiler:
    """Whether XLA is compiling a program."""

    is_busy = False

    def hear(self, event: str, *_: Any, **__: Any) -> None:
        if event in (BEFORE, AFTER):
            self.is_busy = event == BEFORE


@lru_cache(maxsize=1)  # listeners stay for as long as the process does
def _compiler() -> _Compiler:
    """One that hears of every program."""
    compiler = _Compiler()
    jax.monitoring.register_event_duration_secs_listener(compiler.hear)
    return compiler


def _note() -> "TextColumn":
    """A column that tells when a program is compiled, and else what there is to tell."""
    from rich.progress import Task, TextColumn
    from rich.text import Text

    compiler = _compiler()
    compiler.is_busy = False  # a program that was written to disk was not compiled

    class Note(TextColumn):
        max_refresh = None  # also where nothing has moved

        def render(self, task: Task) -> Text:
            return Text("compiling …") if compiler.is_busy else super().render(task)

    return Note("{task.fields[note]}")


@contextmanager
def progress_bar(
    num_steps: int, num_chains: int, counted: str = "divergences", done: int = 0
) -> Iterator[Report]:
    """Give a function to call with the steps and what is `counted` since the last call.

    Without Rich a line is all that is shown.

    Args:
        done: steps that were made before.
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
        _note(),
    )
    # Four times a second: drawing it ten times, as is usual, costs a core some 2 %.
    shown = Progress(
        *columns, console=console, disable=not console.is_terminal, refresh_per_second=4
    )
    with shown as bar:
        task = bar.add_task("", total=num_steps, completed=done, rate="", note="")
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
        TextColumn("{task.fields[left]} evaluations left"),
        _note(),
    )
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=4) as bar:
        task = bar.add_task("exploring", total=total, left=f"{total:,}", note="")

        def tell(stage: str, spent: int, note: str) -> None:
            left = f"{max(total - spent, 0):,}"
            bar.update(task, completed=spent, description=stage, left=left, note=note)

        yield tell
