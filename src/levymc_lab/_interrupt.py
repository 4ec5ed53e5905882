"""Ctrl-C before the work begins: the process ends at once, quietly.

An exception will not do while modules are imported: JAX's extension turns it into another error, or
ends the process with a stack of its own, and a garbage collection in between swallows it.
"""

import os
import signal
from typing import Any

CODE = 130  # what shells give for Ctrl-C


def end_quietly(*_: Any) -> None:
    """There is nothing yet to be saved or cleaned."""
    os._exit(CODE)


def be_quiet() -> None:
    """From now on Ctrl-C ends the process; unless it is ignored, as in the background."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, end_quietly)


def be_heard() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt, as ever."""
    if signal.getsignal(signal.SIGINT) is end_quietly:
        signal.signal(signal.SIGINT, signal.default_int_handler)
