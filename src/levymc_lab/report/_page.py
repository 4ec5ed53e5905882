"""The page as a whole: the template is filled and written."""

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from levymc._workdir import ResultsError, atomic_bytes

from . import _view
from ._entries import STATES, Entry, read_entries

FILE_NAME = "index.html"
TEMPLATE = "page.html.j2"
STYLE = "page.css"
OURS = b"<title>levymc: "  # of the template


def write_page(folder: Path | str) -> Path:
    """Write FOLDER/index.html, one page on all results in a folder, and give its path.

    The page needs neither a network nor other files.  The same results give the same bytes: its
    dates are those of the runs.  Runs that are unfinished or damaged are shown as such, unfinished
    ones with what their cells give so far, if the experiment shows parts.

    Args:
        folder: as ``--out`` of ``levymc run``; it holds a folder for each experiment.

    Returns: the path of the page, which replaces an earlier one in one step.

    Raises:
        ResultsError: the folder holds no results, or a page of that name that is not ours.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_page(folder)
        Traceback (most recent call last):
        ...
        levymc...ResultsError: ... holds no results: ...
    """
    path = Path(folder) / FILE_NAME
    entries = read_entries(Path(folder))
    if path.is_file() and OURS not in path.read_bytes():
        raise ResultsError(
            f"{path} is no page of levymc, and is not written over. Move it away, or name another "
            "folder."
        )
    # JSON can hold half a surrogate pair, which UTF-8 cannot.
    atomic_bytes(path, page(entries).encode(errors="replace"))
    return path


def page(entries: list[Entry]) -> str:
    """The page as text."""
    loader = PackageLoader(__package__, "")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    style = Markup(loader.get_source(environment, STYLE)[0])
    template = environment.get_template(TEMPLATE)
    return template.render(entries=entries, states=STATES, view=_view, style=style)
