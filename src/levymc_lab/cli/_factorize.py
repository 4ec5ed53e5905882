"""``levymc factorize``: ratings to predictions, with a bar and the running error."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from ._exit import guarded

if TYPE_CHECKING:
    from levymc_lab.factorize import Progress as Step

PHASES = {"noise": "estimating the noise", "burn-in": "burn-in", "sampling": "sampling"}


class Request(NamedTuple):
    """What was asked for."""

    ratings: Path
    out: Path
    rank: int
    alpha: float
    steps: int
    seed: int
    noise: float | None
    predict: Path | None
    threads: int | None
    force: bool

    @property
    def resume(self) -> str:
        """The command that goes on; without --force, which would start anew."""
        words = ["levymc", "factorize", str(self.ratings), "--out", str(self.out)]
        for name in ("rank", "alpha", "steps", "seed", "noise", "predict", "threads"):
            value = getattr(self, name)
            words += [] if value is None else [f"--{name}", str(value)]
        return shlex.join(words)


def factorize_ratings(request: Request) -> None:
    """Fit and show what came of it."""
    from levymc_lab import factorize
    from levymc_lab.framework import MismatchError

    settings = factorize.Settings(
        request.rank, request.alpha, request.steps, request.seed, request.noise
    )
    with guarded(request.resume, ValueError):
        job = factorize.prepare(
            request.ratings,
            request.out,
            settings,
            predict=request.predict,
            num_threads=request.threads,
            force=request.force,
        )
    with guarded(request.resume, MismatchError), _bar() as report:
        manifest = factorize.run(job, report)
    _show(manifest, request.out)


def _show(manifest: dict[str, Any], out: Path) -> None:
    scores, console = manifest["scores"], Console()
    console.print(
        f"[bold]{escape(manifest['source'])}[/]: {manifest['num_ratings']:,} ratings of "
        f"{manifest['num_items']:,} items by {manifest['num_users']:,} users",
        highlight=False,
        soft_wrap=True,
    )
    table = Table(box=box.SIMPLE_HEAD, show_header=False)
    level = 100 * scores["interval_level"]
    origin = "estimated" if manifest["noise_is_estimated"] else "given"
    rows = {
        f"RMSE on {scores['num_held_out']:,} held-out ratings": f"{scores['rmse']:.4f}",
        "RMSE of the mean rating, for comparison": f"{scores['rmse_of_the_mean_rating']:.4f}",
        f"held-out ratings in their {level:.0f} % interval": (
            f"{100 * scores['interval_coverage']:.1f} %"
        ),
        "mean width of the intervals": f"{scores['interval_mean_width']:.3g}",
        f"noise of a rating, {origin}": f"{manifest['noise']:.3g}",
        "draws": f"{manifest['num_draws']:,}",
        "predictions": f"{manifest['num_predictions']:,}",
        "of them for a new user or item": f"{manifest['num_predictions_for_new']:,}",
        "time": f"{manifest['wall_seconds']:.1f} s",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    console.print(table)
    if manifest["num_divergent_steps"]:
        print(
            f"{manifest['num_divergent_steps']} steps would have left the finite numbers and were "
            "not made: do not trust the intervals. Give a larger --alpha or --noise."
        )
    print(f"Results: {out}")


@contextmanager
def _bar() -> "Iterator[Callable[[Step], None]]":
    """A bar over the steps on stderr; nothing is shown where that is no terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, disable=not console.is_terminal, refresh_per_second=4
    ) as bar:
        task = bar.add_task("preparing", total=1, note="")
        is_chain = False

        def report(step: "Step") -> None:
            nonlocal is_chain
            if (step.phase != "noise") != is_chain:  # earlier steps say nothing about the speed
                is_chain = True
                bar.reset(task, total=step.total, completed=step.done)
            bar.update(
                task,
                description=PHASES[step.phase],
                total=step.total,
                completed=step.done,
                note=_note(step, bar.tasks[0].speed),
            )

        yield report


def _note(step: "Step", speed: float | None) -> str:
    error = "" if step.rmse is None else f"RMSE {step.rmse:.4f}"
    return error if speed is None or step.rmse is None else f"{error}  {speed:,.0f} steps/s"
