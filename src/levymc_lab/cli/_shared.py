"""What the commands share: how they end, options, and tables and bars on a terminal."""

import shlex
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from levymc_lab._interrupt import CODE, be_heard

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn
    from rich.table import Table

Seed = Annotated[int, Option(min=0, max=2**32 - 1, help="All random numbers come from this seed.")]
Force = Annotated[bool, Option("--force", help="Start anew and write over what is there.")]


STANDARD_INPUT = "-"


def existing(path: Path) -> Path:
    """Refuse an argument that names nothing; Typer itself would look for a file named -."""
    if str(path) != STANDARD_INPUT and not path.exists():
        raise typer.BadParameter(f"path {str(path)!r} does not exist.")
    return path


class Exit(IntEnum):
    """Exit codes."""

    FINE = 0
    CHECK_FAILED = 1
    BAD_INPUT = 2
    IO_PROBLEM = 3
    FAULT = 4  # of the program; with a traceback
    INTERRUPTED = CODE


@contextmanager
def guarded(resume: str, bad_input: type[Exception] = ValueError) -> Iterator[None]:
    """Turn what goes wrong into a sentence and a code; `bad_input` is the user's to put right.

    Args:
        resume: the command that goes on after Ctrl-C; without --force, which would start anew.
        bad_input: while arguments are looked at, ValueError; in a run that would be a fault.
    """
    from levymc_lab.framework import ResultsError

    be_heard()
    try:
        yield
    except KeyboardInterrupt:
        sentence = f"stopped; what was finished is safe. Go on with:\n  {resume}"
        raise _stop(Exit.INTERRUPTED, sentence) from None
    except bad_input as error:
        raise _stop(Exit.BAD_INPUT, str(error)) from None
    except (ResultsError, OSError) as error:
        raise _stop(Exit.IO_PROBLEM, str(error)) from None
    except typer.Exit:
        raise
    except Exception:
        traceback.print_exc()
        sentence = f"this is a fault of the program. After a remedy, go on with:\n  {resume}"
        raise _stop(Exit.FAULT, sentence) from None


def keep_programs() -> None:
    """Compile what a command needs once for all; where that cannot be, say so and go on."""
    from levymc import enable_compilation_cache

    try:
        enable_compilation_cache()
    except OSError as error:
        print(
            f"levymc: compiled programs are not kept: {error} LEVYMC_CACHE=off silences this.",
            file=sys.stderr,
        )


def _stop(code: Exit, sentence: str) -> typer.Exit:
    """Report the reason on stderr; to be raised."""
    print(f"levymc: {sentence}", file=sys.stderr)
    return typer.Exit(int(code))


def command_line(*words: str, **options: str | int | float | Path | None) -> str:
    """A command to copy into a shell; options that are None are left out.

    >>> command_line("run", "all", out=Path("my results"), seed=0, jobs=None)
    "levymc run all --out 'my results' --seed 0"
    """
    given = [[f"--{name}", str(value)] for name, value in options.items() if value is not None]
    return shlex.join(["levymc", *words, *chain(*given)])


def grid(**options: Any) -> "Table":
    """An empty table with a line below its header."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, **options)


@contextmanager
def bar(*columns: "ProgressColumn", **options: Any) -> "Iterator[Progress]":
    """A bar on stderr; nothing is shown where that is no terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(
        *columns, console=console, disable=not console.is_terminal, **options
    ) as progress:
        yield progress


def times() -> "list[ProgressColumn]":
    """The last columns of a bar that takes long."""
    from rich.progress import TextColumn, TimeElapsedColumn, TimeRemainingColumn

    return [TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn()]
