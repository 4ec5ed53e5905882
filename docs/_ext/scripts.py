"""Indices and exponents of running text: c_α and x^{1/α} as a reader of a book sees them.

Docstrings and pages write them so that they can be read as they stand, in a terminal too.  Code,
formulas and names keep their characters; long names may be broken behind their dots.
"""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

# x^{…}, x^(…), x^2 and x^d; a longer word behind ^ or _ is a name.
PLAIN = r"(?P<plain>∞|[-−]?\d+|[^\W\d_])(?!\w)"
RAISED = r"\^(?:\{(?P<braced>[^{}]+)\}|\((?P<rounded>[^()]+)\)|" + PLAIN + ")"
BASE = r"(?<!\w)(?P<base>[^\W\d_]\w?[\u0300-\u036f]?|[∂∫])"  # with its hat, if it has one
LOWERED = BASE + r"_(?:\{(?P<list>[^{}]+)\}|(?P<index>[^\W_])(?![^\W⁰-⁹¹²³]))"
SCRIPT = re.compile(f"{RAISED}|{LOWERED}")
VERBATIM = (
    nodes.literal,
    nodes.literal_block,
    nodes.math,
    nodes.math_block,
    nodes.raw,
    nodes.title,
    addnodes.desc_signature,
)


def typeset(text: str) -> Iterator[nodes.Node]:
    """The text as nodes, of which some are raised or lowered."""
    end = 0
    for found in SCRIPT.finditer(text):
        yield nodes.Text(text[end : found.start()] + (found["base"] or ""))
        raised = found["braced"] or found["rounded"] or found["plain"]
        lowered = found["list"] or found["index"]
        node = nodes.superscript if raised else nodes.subscript
        yield node("", "", *typeset(raised or lowered))
        end = found.end()
    yield nodes.Text(text[end:])


def break_names(code: nodes.literal) -> None:
    """Where a line may end inside a name; nothing of it is copied with the name."""
    parts = re.split(r"(?<=\w[./_])(?=\w)", code.astext())
    broken = [
        part for name in parts for part in (nodes.raw("", "<wbr>", format="html"), nodes.Text(name))
    ]
    code.children.clear()
    code.extend(broken[1:])


def typeset_page(app: Sphinx, doctree: nodes.document, name: str) -> None:
    for text in list(doctree.findall(nodes.Text)):
        if SCRIPT.search(text) and not _is_verbatim(text):
            text.parent.replace(text, list(typeset(text)))
    for code in doctree.findall(nodes.literal):
        break_names(code)


def _is_verbatim(node: nodes.Node) -> bool:
    parent = node.parent
    while parent is not None:
        if isinstance(parent, VERBATIM):
            return True
        parent = parent.parent
    return False


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-resolved", typeset_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
