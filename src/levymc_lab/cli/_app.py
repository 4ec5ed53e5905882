"""All commands, and those that are short: list, report, demo and version."""

import io
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from . import _doctor, _factorize, _launch, _predict, _run, _work
from ._data import data_app
from ._shared import Exit, command_line, grid, guarded, keep_programs

EXAMPLES = """
**Examples**

- `levymc demo`
- `levymc doctor`
- `levymc list`
- `levymc run double-well-histograms`
- `levymc run all --profile paper --jobs 2`
- `levymc report results`
- `levymc work run`
- `levymc launch -n 4 script.py`
- `levymc data fetch ml-1m`
- `levymc factorize ratings.csv --out fit`
- `levymc predict fit pairs.csv`
- `levymc recommend fit --user ann --top 20`
"""

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_asked: bool) -> bool:
    """Typer gives the command what this returns."""
    if is_asked:
        from importlib.metadata import version as version_of

        print(f"levymc {version_of('levymc')}")
        raise typer.Exit
    return is_asked


@app.callback(epilog=EXAMPLES)
def levymc(
    is_version: Annotated[
        bool,
        Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Lévy-driven Markov chain Monte Carlo: the paper's experiments, run and judged."""


@app.command("list")
def list_experiments() -> None:
    """List the experiments."""
    from rich.console import Console
    from rich.markup import escape

    from levymc_lab import framework

    table = grid()
    table.add_column("experiment", no_wrap=True)
    table.add_column("question")
    table.add_column("profiles", min_width=len("profiles"))
    for name in framework.names():
        one = framework.get(name)
        heading = f"[bold]{name}[/]\n{escape(one.paper_item)}"
        table.add_row(heading, escape(one.question), ", ".join(one.profiles))
    Console().print(table)


app.command()(_doctor.doctor)
app.command(epilog=_run.EXAMPLES)(_run.run)
app.command(epilog=_work.EXAMPLES)(_work.work)
app.command(
    epilog=_launch.EXAMPLES,
    context_settings={"allow_interspersed_args": False},  # the script may have options, too
)(_launch.launch)
app.command(epilog=_factorize.EXAMPLES)(_factorize.factorize)
app.command(epilog=_predict.PREDICT_EXAMPLES)(_predict.predict)
app.command(epilog=_predict.RECOMMEND_EXAMPLES)(_predict.recommend)


@app.command()
def report(
    folder: Annotated[
        Path,
        Argument(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="This is the folder that run has as --out.",
        ),
    ] = Path("results"),
) -> None:
    """Write one page on all results in a folder."""
    from levymc_lab.report import write_page

    with guarded(command_line("report", str(folder))):
        print(write_page(folder))


@app.command()
def demo() -> None:
    """Show in a minute why Lévy noise matters."""
    from levymc_lab.paper.demo import main
    from levymc_lab.report import write_page

    keep_programs()
    with guarded(command_line("demo")):
        print(f"Page: {write_page(main())}")


@app.command()
def version(
    verbose: Annotated[
        bool,
        Option("--verbose", "-v", help="Print those of its dependencies and the devices, too."),
    ] = False,
) -> None:
    """Print the version."""
    if verbose:
        for name, value in _doctor.settings().items():
            print(f"{name:<12} {value}")
    else:
        _print_version(is_asked=True)


app.add_typer(data_app, name="data")


def main() -> None:
    """The entry point; Ctrl-C while a command still imports what it needs ends quietly, too."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # some locales have no α
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="levymc")
    except KeyboardInterrupt:
        raise SystemExit(int(Exit.INTERRUPTED)) from None
