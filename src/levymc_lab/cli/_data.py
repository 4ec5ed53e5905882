"""``levymc data``: import, fetch and list data sets."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option, Typer

from ._shared import bar, command_line, grid, guarded

FETCH_EXAMPLES = """
**Examples**

- `levymc data fetch ml-1m`
- `levymc data fetch mnist`
- `levymc data fetch ml-latest-small --trust-first-download`

**Exit codes**: 0 fine; 2 bad input, or data with a fault; 3 a file cannot be read or written, or a
download failed, or took longer than two hours; 130 stopped by Ctrl-C.
"""
IMPORT_EXAMPLES = """
**Examples**

- `levymc data import ml-1m --from Downloads/ml-1m.zip`
- `levymc data import ml-20m --from data/ml-20m`
- `levymc data import mnist --from data/mnist`

**Exit codes**: those of fetch.
"""

Cache = Annotated[
    Path | None,
    Option(
        "--cache",
        file_okay=False,
        help="Data sets are kept here; by default in LEVYMC_DATA, or else the user's cache folder.",
    ),
]


def _beginning(incomplete: str) -> list[str]:
    """What the tab key completes."""
    from levymc_lab import data

    return [name for name in data.names() if name.startswith(incomplete)]


Name = Annotated[
    str,
    Argument(
        metavar="NAME",
        help="Name a data set; levymc data list shows all.",
        autocompletion=_beginning,
    ),
]

data_app = Typer(no_args_is_help=True, rich_markup_mode="markdown")


@data_app.callback()
def data() -> None:
    """Data sets: import your copy, download one, see what is there."""


@data_app.command("import", epilog=IMPORT_EXAMPLES)
def import_(
    name: Name,
    source: Annotated[
        Path, Option("--from", metavar="PATH", help="Read this archive, folder or file.")
    ],
    cache: Cache = None,
) -> None:
    """Read your copy of a data set and keep it, checked, in the cache."""
    with guarded(command_line(*sys.argv[1:])):
        from levymc_lab import data

        data.import_dataset(name, source, cache)
        _show_kept(name, cache)


@data_app.command(epilog=FETCH_EXAMPLES)
def fetch(
    name: Name,
    url: Annotated[
        str | None,
        Option(
            help="Use this address, not the official one; for several files, that of their folder."
        ),
    ] = None,
    sha256: Annotated[str | None, Option(help="The file must have this checksum.")] = None,
    trust_first_download: Annotated[
        bool,
        Option("--trust-first-download", help="Take whatever comes where no checksum is known."),
    ] = False,
    force: Annotated[bool, Option("--force", help="Download it, even if it is there.")] = False,
    cache: Cache = None,
) -> None:
    """Show the licence of a data set, download it, check it, and keep it in the cache."""
    with guarded(command_line(*sys.argv[1:])):
        from levymc_lab import data

        if force or data.cached(name, cache) is None:
            with _bar(name) as report:
                data.fetch(
                    name,
                    cache,
                    url,
                    sha256=sha256,
                    trust_first_download=trust_first_download,
                    on_progress=report,
                )
        _show_kept(name, cache)


@data_app.command("list")
def list_(cache: Cache = None) -> None:
    """List the data sets and which of them are in the cache."""
    with guarded(command_line(*sys.argv[1:])):
        from rich.console import Console
        from rich.markup import escape

        from levymc_lab import data

        table = grid()
        table.add_column("name", no_wrap=True, style="bold")
        table.add_column("data set")
        table.add_column("in the cache")
        for name in data.names():
            table.add_row(name, escape(data.get(name).title), escape(_state(name, cache)))
        Console().print(table)
        print(f"The cache is {data.cache_folder(cache)}")


def _show_kept(name: str, cache: Path | None) -> None:
    from levymc_lab import data

    manifest: Any = data.cached(name, cache)
    print(f"{name}: {manifest['summary']}, in {data.cache_folder(cache) / name}")


def _state(name: str, cache: Path | None) -> str:
    from levymc_lab import data

    try:
        manifest = data.cached(name, cache)
    except data.CacheError:
        return "broken: import it again"
    return "–" if manifest is None else manifest["summary"]


@contextmanager
def _bar(name: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar over the bytes."""
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn

    with bar(TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn()) as progress:
        size = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(size, completed=done, total=total)
