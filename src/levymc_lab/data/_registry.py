"""The data sets by name."""

from collections.abc import Callable
from difflib import get_close_matches

from . import _mnist, _movielens
from ._dataset import Dataset
from ._errors import DataError

# What describes a data set, given its name.
DATASETS: dict[str, Callable[[str], Dataset]] = {
    **dict.fromkeys(_movielens.CONTENTS, _movielens.describe),
    "mnist": _mnist.describe,
}


def names() -> list[str]:
    """The data sets that can be imported.

    >>> import levymc_lab.data
    >>> "ml-1m" in levymc_lab.data.names()
    True
    """
    return list(DATASETS)


def get(name: str) -> Dataset:
    """The description of a data set: its title, licence, citation and published files.

    Raises:
        DataError: there is none of that name.

    Examples:
        >>> import levymc_lab.data
        >>> levymc_lab.data.get("ml-1m").downloads[0].filename
        'ml-1m.zip'
    """
    if name not in DATASETS:
        close = get_close_matches(name, DATASETS, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(DATASETS)}."
        raise DataError(f"There is no data set {name!r}. {hint}")
    return DATASETS[name](name)
