"""``levymc predict`` and ``levymc recommend``: what a fit says, without fitting again."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ._shared import command_line, existing, guarded, keep_programs

if TYPE_CHECKING:
    from levymc_lab.factorize import Predictions

PREDICT_EXAMPLES = """
**Examples**

- `levymc predict fit pairs.csv`
- `levymc predict fit pairs.csv --out more.csv`

**Exit codes**: 0 fine; 2 bad input, or a fault in a table, with its line; 3 a file cannot be read
or written, or there is no finished fit; 130 stopped by Ctrl-C.
"""
RECOMMEND_EXAMPLES = """
**Examples**

- `levymc recommend fit --user ann`
- `levymc recommend fit --user 42 --top 100 --rated`

**Exit codes**: those of predict.
"""
Fit = Annotated[
    Path,
    Argument(
        metavar="FIT",
        exists=True,
        file_okay=False,
        help="This is the folder that factorize has as --out.",
    ),
]
Out = Annotated[
    Path | None,
    Option(dir_okay=False, help="Write to this file; by default, to the standard output."),
]


def predict(
    fit: Fit,
    pairs: Annotated[
        Path,
        Argument(
            metavar="PAIRS",
            callback=existing,
            help="Predict for the users and items of this table; - is the standard input.",
        ),
    ],
    out: Out = None,
) -> None:
    """Predict more ratings by a fit, with intervals.

    Nothing is fitted again: the numbers are those that factorize would have given with --predict.
    The columns are those of predictions.csv.
    """
    from levymc_lab import factorize

    keep_programs()
    with guarded(command_line(*sys.argv[1:])):
        _give(factorize.predict(fit, pairs), out)


def recommend(
    fit: Fit,
    user: Annotated[str, Option(help="Recommend to this user, by the id in the table.")],
    top: Annotated[int, Option(min=1, help="Recommend at most this many items.")] = 20,
    rated: Annotated[
        bool, Option("--rated", help="Take also the items that the user has rated.")
    ] = False,
    out: Out = None,
) -> None:
    """Show the items that a user would rate highest, best first, with intervals.

    Items that the user has rated are left out, and those that no rating was fitted to. The columns
    are those of predictions.csv.
    """
    from levymc_lab import factorize

    keep_programs()
    with guarded(command_line(*sys.argv[1:])):
        _give(factorize.recommend(fit, user, top, rated=rated), out)


def _give(predictions: "Predictions", out: Path | None) -> None:
    from levymc._workdir import atomic_bytes

    text = predictions.to_csv()
    if out is None:
        sys.stdout.buffer.write(text)  # the bytes of a file, whatever the locale's encoding
        sys.stdout.flush()
    elif out.exists() and not out.is_file():  # a pipe or a device stays what it is
        out.write_bytes(text)
    else:
        atomic_bytes(out.resolve(), text)
        print(f"Predictions: {out}")
