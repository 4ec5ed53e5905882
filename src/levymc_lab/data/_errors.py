"""What can be wrong with data; each message says where, why, and what to do."""

from pathlib import Path


class DataError(ValueError):
    """Data that cannot be what they were taken for: a bad row, a damaged archive, a wrong file."""


class MissingDataError(DataError):
    """A data set that is not in the cache."""


class CacheError(OSError):
    """A cache whose files are not what was written."""


class DownloadError(OSError):
    """A download that did not arrive, or not as published."""


def at_line(label: str | Path, line: int, reason: str) -> DataError:
    """An error at a line of a file, in the form that editors know; to be raised."""
    return DataError(f"{label}:{line}: {reason}")
