"""From what a person gives to a job that can be run; nothing is written."""

import os
from pathlib import Path
from typing import Any, NamedTuple

from levymc import models
from levymc_lab import data
from levymc_lab.framework import versions

from ._folder import Folder, check_folder
from ._pairs import digest_of
from ._settings import DEFAULTS, Settings, check_settings
from ._table import Table, load_table

MOST_THREADS = 4  # more are of no use to the kernel


class Job(NamedTuple):
    """A fit that is ready to run.

    source: name of the file of ratings.
    asked: pairs to predict; None for those held out.
    identity: all that the numbers depend on, but versions.
    """

    settings: Settings
    source: str
    table: Table
    asked: data.Pairs | None
    folder: Folder
    identity: dict[str, Any]
    num_threads: int
    starts_anew: bool


def prepare(
    ratings: str | os.PathLike[str],
    out: str | os.PathLike[str],
    settings: Settings = DEFAULTS,
    *,
    predict: str | os.PathLike[str] | None = None,
    num_threads: int | None = None,
    force: bool = False,
) -> Job:
    """Read and check everything, and write nothing.

    Args:
        ratings: a table of user, item and rating, or MovieLens's file, folder or archive.
        out: folder of results; made if it is not there.
        settings: of the fit.
        predict: a table of users and items to predict; the held-out ratings if not given.
        num_threads: of the kernel; the numbers do not depend on it.
        force: start anew, over what the folder holds.

    Raises:
        DataError: a fault of a file, as file:line: reason.
        MismatchError: the folder holds another run.
        ValueError, OSError: settings outside their range; what cannot be read.
    """
    check_settings(settings)
    folder, source = Folder(Path(out)), Path(ratings)
    table = load_table(source, settings.seed)
    asked = None if predict is None else data.read_pairs(predict)
    identity = {
        **settings._asdict(),
        "ratings": table.digest,
        "pairs": digest_of(asked),
        "backend": models.backend(),
    }
    if not force:
        check_folder(folder, identity, versions())
    threads = min(MOST_THREADS, os.cpu_count() or 1) if num_threads is None else num_threads
    return Job(settings, source.name, table, asked, folder, identity, threads, force)
