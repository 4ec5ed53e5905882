"""Go on with a stored run, or read what it has."""

from pathlib import Path
from typing import Any

from ._feed import Loader
from ._result import Result
from ._sample import finish
from ._saved import load_saved


def resume(store: str | Path, *, minibatches: Any = None, progress: bool = True) -> Result:
    """Go on with a run that `levymc.sample(..., store=...)` began, and return the whole of it.

    Needs nothing but the folder: the compiled program is in it.  The draws are the same bytes as
    those of a run that nothing interrupted.  A run that is complete is read.

    Args:
        store: the folder.
        minibatches: the function that the run was begun with, where it was begun with one.
        progress: show a bar, in a terminal.

    Raises:
        StoreError: no store, or one that is damaged; what is wrong is named.
        RuntimeError: another process is running it.
    """
    from ._store import open_store, run_store

    feed = None if minibatches is None else Loader(minibatches)
    return finish(run_store(open_store(Path(store)), feed, progress=progress))


def load(path: str | Path) -> Result:
    """Read what `Result.save` wrote, or the draws that a stored run has so far.

    The run may still be going on.

    Raises:
        StoreError, ValueError: a file or folder that is neither, or is damaged.
    """
    if Path(path).is_file():
        return load_saved(Path(path))
    from ._store import open_store, read

    opened = open_store(Path(path))
    is_complete = opened.num_done == opened.plan.num_chunks
    return read(opened, is_interrupted=not is_complete)
