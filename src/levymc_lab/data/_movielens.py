"""The MovieLens data sets."""

from functools import partial
from pathlib import Path
from typing import NamedTuple

from ._columns import HALF_STARS, WHOLE_STARS
from ._dataset import Dataset, Download
from ._errors import DataError
from ._formats import CSV, DAT, FILENAMES, TAB, Format
from ._ratings import Ratings
from ._read import read_source
from ._source import find

ADDRESS = "https://files.grouplens.org/datasets/movielens"
TERMS = """\
Neither the University of Minnesota nor any of the researchers involved can guarantee the
correctness of the data, its suitability for any particular purpose, or the validity of results
based on its use. It may be used for any research purposes under these conditions:
- State or imply no endorsement from the University of Minnesota or the GroupLens Research Group.
- Acknowledge the use of the data set in publications that result from it.
- {redistribution}
- No commercial or revenue-bearing use without permission from a faculty member of the GroupLens
  Research Project at the University of Minnesota.
The full text is in the README of the archive."""
NO_REDISTRIBUTION = "Do not redistribute the data without separate permission."
REDISTRIBUTION = "Redistribute the data, also transformed, under these same conditions only."
CITATION = (
    "F. Maxwell Harper and Joseph A. Konstan. 2015. The MovieLens Datasets: History and Context. "
    "ACM Transactions on Interactive Intelligent Systems 5, 4, Article 19. doi:10.1145/2827872"
)


class Contents(NamedTuple):
    """What an archive must hold; the number of ratings is None where it changes with time."""

    format: Format
    scale: tuple[int, ...]
    num_ratings: int | None


CONTENTS = {
    "ml-100k": Contents(TAB, WHOLE_STARS, 100_000),
    "ml-1m": Contents(DAT, WHOLE_STARS, 1_000_209),
    "ml-10m": Contents(DAT, HALF_STARS, 10_000_054),
    "ml-20m": Contents(CSV, HALF_STARS, 20_000_263),
    "ml-latest-small": Contents(CSV, HALF_STARS, None),
}
# The MD5s are GroupLens's own; it publishes no SHA-256, and no fixed checksum of what changes.
CHECKSUMS: dict[str, dict[str, str]] = {
    "ml-100k": {"md5": "0e33842e24a9c977be4e0107933c0723"},
    "ml-1m": {
        "md5": "c4d9eecfca2ab87c1945afe126590906",
        "sha256": "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
    },
    "ml-10m": {"md5": "ce571fd55effeba0271552578f2648bd"},
    "ml-20m": {"md5": "cd245b17a1ae2cc31bb14903e1204af3"},
    "ml-latest-small": {},
}
TITLES = {
    "ml-100k": "MovieLens 100K, 1998: 943 users, 1682 movies, 1 to 5 stars",
    "ml-1m": "MovieLens 1M, 2000: 6040 users, 3706 movies, 1 to 5 stars",
    "ml-10m": "MovieLens 10M, 2009: half stars",
    "ml-20m": "MovieLens 20M, 2015: half stars",
    "ml-latest-small": "MovieLens latest-small: some 100 000 half-star ratings, changes with time",
}


def describe(name: str) -> Dataset:
    """The description of one of them."""
    is_latest = name.startswith("ml-latest")
    return Dataset(
        name=name,
        title=TITLES[name],
        downloads=(Download(f"{ADDRESS}/{name}.zip", **CHECKSUMS[name]),),
        licence=TERMS.format(redistribution=REDISTRIBUTION if is_latest else NO_REDISTRIBUTION),
        citation=CITATION,
        kind=Ratings,
        read=partial(_read_as, name),
        summary=_summary,
    )


def _read_as(name: str, path: Path) -> Ratings:
    """Read an archive, folder or file, and refuse what is not that data set."""
    contents = CONTENTS[name]
    ratings = read_source(find(path, FILENAMES), contents.scale, contents.format)
    if contents.num_ratings not in (None, ratings.num_ratings):
        others = [
            other for other, its in CONTENTS.items() if its.num_ratings == ratings.num_ratings
        ]
        hint = f"That is the number of {others[0]}" if others else "Is it whole"
        raise DataError(
            f"{path}: {ratings.num_ratings} ratings, where {name} has {contents.num_ratings}. "
            f"{hint}{'.' if others else ', and the right data set?'}"
        )
    return ratings


def _summary(ratings: Ratings) -> str:
    return (
        f"{ratings.num_ratings} ratings of {ratings.num_items} items by {ratings.num_users} users"
    )
