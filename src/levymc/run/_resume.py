"""Go on with a stored run, or read what it has."""

from pathlib import Path

from ._result import Result
from ._sample import finish


def resume(store: str | Path, *, progress: bool = True) -> Result:
    """Go on with a run that `levymc.sample(..., store=...)` began, and return the whole of it.

    Needs nothing but the folder: the compiled program is in it.  The draws are the same bytes as
    those of a run that nothing interrupted.  A run that is complete is read.

    Args:
        store: the folder.
        progress: show a bar, in a terminal.

    Raises:
        StoreError: no store, or one that is damaged; what is wrong is named.
        RuntimeError: another process is running it.
    """
    from ._store import open_store, run_store

    return finish(run_store(open_store(Path(store)), progress=progress))


def load(store: str | Path) -> Result:
    """The draws that a stored run has so far; it may still be running."""
    from ._store import open_store, read

    opened = open_store(Path(store))
    is_complete = opened.num_done == opened.plan.num_chunks
    return read(opened, is_interrupted=not is_complete)
