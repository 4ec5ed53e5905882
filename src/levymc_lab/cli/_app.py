"""The commands; what they need is imported when they are called, so that --help is quick."""

from pathlib import Path
from typing import Annotated

import typer

from ._data import data_app
from ._exit import Exit, guarded

EXAMPLES = """
**Examples**

- `levymc demo`
- `levymc list`
- `levymc run double-well-histograms`
- `levymc run all --profile paper --jobs 2`
- `levymc report results`
- `levymc data fetch ml-1m`
- `levymc factorize ratings.csv --out fit`
"""
RUN_EXAMPLES = """
**Examples**

- `levymc run stable-laws`
- `levymc run stable-laws --profile paper --out results --seed 1 --jobs 2`
- `levymc run all --force`

**Exit codes**: 0 fine; 1 a check failed; 2 bad input; 3 a folder cannot be read or written;
4 a fault of the program; 130 stopped by Ctrl-C.
"""
FACTORIZE_EXAMPLES = """
**Examples**

- `levymc factorize ratings.csv --out fit`
- `levymc factorize ratings.csv --rank 10 --alpha 1.8 --out fit --predict pairs.csv`

**Exit codes**: as of run; 2 also for a fault in a table, with its line.
"""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data_app, name="data")


@app.callback(epilog=EXAMPLES)
def levymc() -> None:
    """Lévy-driven Markov chain Monte Carlo: the paper's experiments, run and judged."""


@app.command("list")
def list_experiments() -> None:
    """List the experiments."""
    from ._show import show_list

    show_list()


@app.command(epilog=RUN_EXAMPLES)
def run(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Experiments, or all.")],
    profile: Annotated[
        str, typer.Option(help="quick takes seconds; paper has the paper's sizes.")
    ] = "quick",
    out: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of all random numbers.")] = 0,
    jobs: Annotated[
        int, typer.Option(min=0, help="Processes, of one thread each; 0: in this process.")
    ] = 1,
    force: Annotated[bool, typer.Option("--force", help="Start anew, over what is there.")] = False,
) -> None:
    """Run experiments, or go on with what is missing of them.

    Results go to OUT/NAME, and a page on all of them to OUT/index.html, also when you stop with
    Ctrl-C, whenever you like: the same command goes on. What is there is not written over unless
    you say --force.
    """
    from ._run import Request, run_all

    raise typer.Exit(int(run_all(Request(names, profile, out, seed, jobs, force))))


@app.command(epilog=FACTORIZE_EXAMPLES)
def factorize(
    ratings: Annotated[
        Path,
        typer.Argument(metavar="RATINGS", exists=True, help="Table of user, item, rating."),
    ],
    out: Annotated[Path, typer.Option(file_okay=False, help="Folder of results.")],
    rank: Annotated[int, typer.Option(min=1, max=61, help="Columns of the factors.")] = 10,
    alpha: Annotated[float, typer.Option(help="Of the noise, in (1, 2]; 2 is SGLD.")] = 1.8,
    steps: Annotated[int, typer.Option(min=50, help="Length of the chain.")] = 4000,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of all random numbers.")] = 0,
    noise: Annotated[
        float | None,
        typer.Option(help="Standard deviation of a rating about its mean; else estimated."),
    ] = None,
    predict: Annotated[
        Path | None,
        typer.Option(
            metavar="PAIRS",
            exists=True,
            dir_okay=False,
            help="Table of users and items to predict; else the held-out ratings.",
        ),
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Else at most four.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Start anew, over what is there.")] = False,
) -> None:
    """Predict ratings of items by users, with intervals.

    RATINGS is a text file with a user, an item and a rating a line, with or without a header, or
    MovieLens's archive. A tenth of the ratings is held out, to tell how good predictions are. OUT
    gets predictions.csv, factors.npz and manifest.json. Stop with Ctrl-C whenever you like: the
    same command goes on, and ends as if it had not been stopped.
    """
    from ._factorize import Request, factorize_ratings

    factorize_ratings(
        Request(ratings, out, rank, alpha, steps, seed, noise, predict, threads, force)
    )


@app.command()
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="As --out of run.")
    ] = Path("results"),
) -> None:
    """Write one page on all results in a folder."""
    from levymc_lab.report import write_page

    with guarded(f"levymc report {folder}", ValueError):
        print(write_page(folder))


@app.command()
def demo() -> None:
    """Show in a minute why Lévy noise matters."""
    from levymc_lab.paper.demo import main
    from levymc_lab.report import write_page

    with guarded("levymc demo", ValueError):
        print(f"Page: {write_page(main())}")


@app.command()
def version(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also of what it stands on, and devices.")
    ] = False,
) -> None:
    """Print the version."""
    if verbose:
        from ._show import show_versions

        show_versions()
    else:
        from importlib.metadata import version as version_of

        print(f"levymc {version_of('levymc')}")


def main() -> None:
    """The entry point."""
    try:
        app(prog_name="levymc")
    except KeyboardInterrupt:
        raise SystemExit(int(Exit.INTERRUPTED)) from None
