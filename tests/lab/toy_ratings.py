"""A tiny data set in the official formats, and as one of the registry."""

import zipfile

from levymc_lab.data import Dataset, Download, Ratings, _movielens, _sources, _store
from levymc_lab.data._formats import DAT, FILENAMES, WHOLE_STARS

ROWS = [(7, 50, 3, 11), (7, 20, 5, 12), (3, 20, 1, 13)]
TAB_TEXT = "".join("\t".join(map(str, row)) + "\n" for row in ROWS)
DAT_TEXT = "".join("::".join(map(str, row)) + "\n" for row in ROWS)
CSV_HEADER = "userId,movieId,rating,timestamp\n"
CSV_TEXT = CSV_HEADER + "".join(f"{u},{i},{r:.1f},{t}\n" for u, i, r, t in ROWS)


def zipped(path, members):
    """An archive of texts by name."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def triples(ratings: Ratings):
    """User, item and rating of every row, with the original ids."""
    users, items = ratings.user_ids[ratings.users], ratings.item_ids[ratings.items]
    return list(zip(users.tolist(), items.tolist(), ratings.values.tolist(), strict=True))


def describe_toy(name, **checksums):
    """A data set like MovieLens, in a `::` file."""
    return Dataset(
        name=name,
        title="A toy",
        downloads=(Download("https://nowhere.invalid/toy.zip", **checksums),),
        licence="Play with it.",
        citation="Nobody. 2000. Toys.",
        kind=Ratings,
        read=lambda path: _movielens.read_source(_sources.find(path, FILENAMES), WHOLE_STARS, DAT),
        summary=lambda ratings: f"{ratings.num_ratings} ratings",
    )


def register_toy(monkeypatch, **checksums):
    monkeypatch.setitem(_store.DATASETS, "toy", lambda name: describe_toy(name, **checksums))
