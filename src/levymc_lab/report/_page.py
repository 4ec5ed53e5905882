"""The page as a whole."""

from importlib import resources
from pathlib import Path

from levymc._workdir import atomic_bytes

from ._badges import symbols
from ._entries import Entry, read_entries
from ._header import TITLE, header, summary
from ._html import Html, tag, void
from ._section import section

FILE_NAME = "index.html"
STYLES = ("page.css", "parts.css", "media.css")  # later ones overrule

# The browser itself refuses whatever would need a network.
POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)
# Paper cannot be unfolded.
OPEN_FOR_PRINT = """
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  folded.forEach((one) => { one.open = true; });
});
addEventListener("afterprint", () => folded.forEach((one) => { one.open = false; }));
"""


def write_page(folder: Path | str) -> Path:
    """Write FOLDER/index.html, one page on all results in a folder, and give its path.

    The page needs neither a network nor other files.  The same results give the same bytes: its
    dates are those of the runs.  Runs that are unfinished or damaged are shown as such, unfinished
    ones with what their cells say so far, if the experiment shows parts.

    Args:
        folder: as ``--out`` of ``levymc run``; it holds a folder for each experiment.

    Returns: the path of the page, which replaces an earlier one in one step.

    Raises:
        ResultsError: the folder holds no results.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_page(folder)
        Traceback (most recent call last):
        ...
        levymc._workdir.ResultsError: ... holds no results: ...
    """
    path = Path(folder) / FILE_NAME
    atomic_bytes(path, page(read_entries(Path(folder))).encode())
    return path


def page(entries: list[Entry]) -> str:
    """The page as text."""
    body = tag(
        "body",
        symbols(),
        header(entries),
        tag("main", summary(entries), *(section(entry) for entry in entries)),
        tag("footer", tag("a", "Back to the verdicts", href="#summary")),
    )
    return f"<!DOCTYPE html>\n{tag('html', _head(), body, lang='en')}\n"


def _head() -> Html:
    here = resources.files(__package__)
    styles = "".join(here.joinpath(name).read_text("utf-8") for name in STYLES)
    return tag(
        "head",
        void("meta", charset="utf-8"),
        void("meta", http_equiv="Content-Security-Policy", content=POLICY),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", name="color-scheme", content="light dark"),
        tag("title", f"levymc: {TITLE}"),
        void("link", rel="icon", href="data:,"),
        tag("style", Html(styles)),
        tag("script", Html(OPEN_FOR_PRINT)),
    )
