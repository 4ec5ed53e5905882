"""``levymc factorize``: ratings to predictions, with a bar and the running error."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ._shared import Force, Seed, bar, command_line, existing, grid, guarded, keep_programs, times

if TYPE_CHECKING:
    from levymc_lab.factorize import Progress as Step
    from levymc_lab.factorize import Reading

EXAMPLES = """
**Examples**

- `levymc factorize ratings.csv --out fit`
- `levymc factorize ratings.csv --rank 10 --out fit --predict pairs.csv`
- `levymc factorize books.csv --columns reader,isbn,stars --scale 1,5 --skip-bad 10 --out fit`
- `zcat ratings.csv.gz | levymc factorize - --out fit`

**Exit codes**: those of run; 2 also for a fault in a table, with its line.
"""
NO_SCALE = "none"
NAMES = {"gibbs": "Gibbs", "sg": "stochastic gradients"}
MOST_BAD = 20  # rows that are shown
PHASES = {"noise": "estimating the noise", "burn-in": "burn-in", "sampling": "sampling"}


Ratings = Annotated[
    Path,
    Argument(
        metavar="RATINGS",
        callback=existing,
        help="Read this table of users, items and ratings; - is the standard input.",
    ),
]
Out = Annotated[Path, Option(file_okay=False, help="Results go into this folder.")]
Rank = Annotated[int, Option(min=1, max=61, help="The factors have this many columns.")]
Method = Annotated[
    str,
    Option(
        metavar="sg|gibbs",
        help="Sample by stochastic gradients, or by sweeps of the Gibbs sampler, which is exact: "
        "intervals hold what they say, but predictions were a little worse where we tried.",
    ),
]
Alpha = Annotated[
    float,
    Option(
        help="The noise of stochastic gradients has this tail index, in (1, 2]; 2 is SGLD, and "
        "none does better."
    ),
]
Steps = Annotated[
    int | None,
    Option(
        min=50,
        help="The chain makes this many steps; by default, 4000 of sg, or 190 sweeps of gibbs.",
    ),
]
Noise = Annotated[
    float | None,
    Option(help="This is the standard deviation of a rating; by default it is estimated."),
]
Columns = Annotated[
    str | None,
    Option(
        metavar="USER,ITEM,RATING[,TIME]",
        help="These columns of the header are meant, or these numbers from 0; by default, those "
        "with known headings, or else the first three. A time is checked and left out.",
    ),
]
Ends = Annotated[
    str | None,
    Option(
        metavar="LOW,HIGH",
        help="Refuse ratings outside of this scale, and keep predictions in it; none is no scale. "
        "By default it is that of the ratings, if at most 21 different ones occur.",
    ),
]
SkipBad = Annotated[
    int, Option(min=0, help="Leave out up to this many bad rows, and report their lines.")
]
Pairs = Annotated[
    Path | None,
    Option(
        metavar="PAIRS",
        exists=True,
        dir_okay=False,
        help="Predict for these users and items; by default, for the held-out ratings.",
    ),
]
Threads = Annotated[
    int | None, Option(min=1, help="Use this many threads; by default, at most four.")
]


def factorize(
    ratings: Ratings,
    out: Out,
    rank: Rank = 10,
    method: Method = "sg",
    alpha: Alpha = 2.0,
    steps: Steps = None,
    seed: Seed = 0,
    noise: Noise = None,
    columns: Columns = None,
    scale: Ends = None,
    skip_bad: SkipBad = 0,
    predict: Pairs = None,
    threads: Threads = None,
    force: Force = False,
) -> None:
    """Predict ratings of items by users, with intervals.

    RATINGS is a text file with a user, an item and a rating on each line, with or without a header,
    or MovieLens's archive. A tenth of the ratings is held out, to measure how good predictions are.
    OUT gets predictions.csv, factors.npz with a README, and manifest.json; levymc predict and
    levymc recommend use it. Stop with Ctrl-C whenever you like: the same command goes on, and ends
    as if it had not been stopped.
    """
    from levymc_lab.factorize import Settings, prepare, run
    from levymc_lab.framework import MismatchError

    keep_programs()
    settings = Settings(rank, alpha, steps, seed, noise, method)
    given = {"out": out, **settings._asdict(), "columns": columns, "scale": scale}
    given |= {"skip-bad": skip_bad or None, "predict": predict, "threads": threads}
    resume = command_line("factorize", str(ratings), **given)
    with guarded(resume):
        job = prepare(
            ratings,
            out,
            settings,
            reading=_reading(columns, scale, skip_bad),
            predict=predict,
            num_threads=threads,
            force=force,
        )
    _show_bad(job.bad)
    with guarded(resume, MismatchError), _bar() as report:
        manifest = run(job, report)
    _show(manifest, out)


def _reading(columns: str | None, scale: str | None, skip_bad: int) -> "Reading":
    """As it is written on the command line."""
    from levymc_lab.data import DataError
    from levymc_lab.factorize import Reading

    names = None if columns is None else tuple(name.strip() for name in columns.split(","))
    ends = None if scale is None else (-math.inf, math.inf)
    if scale not in (None, NO_SCALE):
        try:
            low, high = map(float, str(scale).split(","))
        except ValueError:
            raise DataError(
                f"--scale must be two numbers, such as 1,5, or {NO_SCALE}, got {scale!r}."
            ) from None
        ends = (low, high)
    return Reading(names, ends, skip_bad)


def _show_bad(bad: Sequence[str]) -> None:
    """The rows that were left out, on stderr."""
    if not bad:
        return
    rows = "row was" if len(bad) == 1 else "rows were"
    lines = [f"levymc: {len(bad)} bad {rows} left out:", *(f"  {one}" for one in bad[:MOST_BAD])]
    if len(bad) > MOST_BAD:
        lines.append(f"  and {len(bad) - MOST_BAD} more; all of them are in manifest.json.")
    print("\n".join(lines), file=sys.stderr)


def _show(manifest: dict[str, Any], out: Path) -> None:
    from rich.console import Console
    from rich.markup import escape

    scores, console = manifest["scores"], Console()
    console.print(
        f"[bold]{escape(manifest['source'])}[/]: {manifest['num_ratings']:,} ratings of "
        f"{manifest['num_items']:,} items by {manifest['num_users']:,} users",
        highlight=False,
        soft_wrap=True,
    )
    table = grid(show_header=False)
    level = 100 * scores["interval_level"]
    origin = "estimated" if manifest["noise_is_estimated"] else "given"
    identity = manifest["identity"]
    rows = {
        "sampler": f"{NAMES[identity['method']]}, {identity['steps']:,} steps",
        f"RMSE on {scores['num_held_out']:,} held-out ratings": f"{scores['rmse']:.4f}",
        "RMSE of the mean rating, for comparison": f"{scores['rmse_of_the_mean_rating']:.4f}",
        f"held-out ratings in their {level:.0f} % interval": (
            f"{100 * scores['interval_coverage']:.1f} %"
        ),
        "mean width of the intervals": f"{scores['interval_mean_width']:.3g}",
        f"noise of a rating, {origin}": _with_error(manifest["noise"], manifest["noise_error"]),
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


def _with_error(value: float, error: float | None) -> str:
    """A number, and its Monte Carlo error if it has one."""
    return f"{value:.3g}" if error is None else f"{value:.3g} ± {error:.1g}"


@contextmanager
def _bar() -> "Iterator[Callable[[Step], None]]":
    """A bar over the steps."""
    from rich.progress import BarColumn, TextColumn

    texts = ("{task.description}", "{task.completed:.0f}/{task.total:.0f}", "{task.fields[note]}")
    description, count, note = map(TextColumn, texts)
    with bar(description, BarColumn(), count, note, *times(), refresh_per_second=4) as progress:
        task = progress.add_task("preparing", total=1, note="")
        is_chain = False

        def report(step: "Step") -> None:
            nonlocal is_chain
            if (step.phase != "noise") != is_chain:  # the speed is not that of earlier steps
                is_chain = True
                progress.reset(task, total=step.total, completed=step.done)
            note = _note(step, progress.tasks[0].speed)
            progress.update(task, description=PHASES[step.phase], note=note)
            progress.update(task, total=step.total, completed=step.done)

        yield report


def _note(step: "Step", speed: float | None) -> str:
    error = "" if step.rmse is None else f"RMSE {step.rmse:.4f}"
    return error if speed is None or step.rmse is None else f"{error}  {speed:,.0f} steps/s"
