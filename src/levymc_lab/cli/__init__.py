"""The ``levymc`` command."""

from ._app import app as app
from ._app import main as main
from ._exit import Exit as Exit
