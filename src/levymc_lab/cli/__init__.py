"""The ``levymc`` command.

``_app`` holds the short commands and gathers the others, each from a module of its own; ``_shared``
is how they end and what they show on a terminal.  Whatever is slow to import is imported inside the
commands, so that --help is quick.
"""

from ._app import app as app
from ._app import main as main
from ._shared import Exit as Exit
