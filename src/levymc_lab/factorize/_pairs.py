"""The pairs that are predicted: the held-out ratings first, then those asked for."""

import hashlib
from typing import NamedTuple

import numpy as np

from levymc_lab import data

from ._table import Table

KNOWN, NEW_USER, NEW_ITEM, NEW_BOTH = BASES = ("known", "new user", "new item", "new both")


class Targets(NamedTuple):
    """Pairs of indices into the model's rows; the row after the last is that of a new one.

    A user or item without a rating in the training part is a new one.

    users, items: int32.
    num_held_out: so many of them, at the beginning, are the held-out ratings.
    """

    users: np.ndarray
    items: np.ndarray
    num_held_out: int

    @property
    def num_pairs(self) -> int:
        return len(self.users)


class Labels(NamedTuple):
    """What is written beside each prediction; `ratings` are NaN where there are none."""

    users: list[str]
    items: list[str]
    ratings: np.ndarray
    bases: list[str]


def targets_of(table: Table, asked: data.Pairs | None) -> Targets:
    """All pairs for which a prediction is made."""
    users, items = table.held_out.users.astype(np.int64), table.held_out.items.astype(np.int64)
    if asked is not None:
        asked_users, asked_items = indices(table.whole, asked)
        users, items = np.append(users, asked_users), np.append(items, asked_items)
    training = table.training
    return Targets(
        _known(users, training.users, training.num_users),
        _known(items, training.items, training.num_items),
        table.held_out.num_ratings,
    )


def labels_of(table: Table, asked: data.Pairs | None, targets: Targets) -> Labels:
    """Of the predictions that are written: those asked for, or else those held out."""
    whole, held_out = table.whole, table.held_out
    first = 0 if asked is None else targets.num_held_out
    is_new_user = targets.users[first:] == whole.num_users
    is_new_item = targets.items[first:] == whole.num_items
    bases = [BASES[place] for place in (is_new_user + 2 * is_new_item).tolist()]
    if asked is not None:
        return Labels(asked.users, asked.items, _ratings(whole, asked), bases)
    users, items = whole.user_ids[held_out.users], whole.item_ids[held_out.items]
    names = [list(map(str, ids.tolist())) for ids in (users, items)]
    return Labels(names[0], names[1], held_out.values, bases)


def indices(whole: data.Ratings, asked: data.Pairs) -> tuple[np.ndarray, np.ndarray]:
    """The index of each user and item that is asked for; the number of all for one not there."""
    both = []
    for ids, texts in ((whole.user_ids, asked.users), (whole.item_ids, asked.items)):
        place = {str(id): index for index, id in enumerate(ids.tolist())}
        both.append(np.array([place.get(text, len(ids)) for text in texts], np.int64))
    return both[0], both[1]


def digest_of(asked: data.Pairs | None) -> str | None:
    if asked is None:
        return None
    text = "\0".join([*asked.users, *asked.items])
    return hashlib.sha256(text.encode()).hexdigest()


def _known(rows: np.ndarray, trained: np.ndarray, num_rows: int) -> np.ndarray:
    """The rows, but `num_rows` in place of those that no rating was fitted to."""
    is_trained = np.append(np.bincount(trained, minlength=num_rows) > 0, False)
    return np.where(is_trained[rows], rows, num_rows).astype(np.int32)


def _ratings(whole: data.Ratings, asked: data.Pairs) -> np.ndarray:
    """The rating of each pair in the table, NaN where there is none."""
    users, items = indices(whole, asked)
    width = whole.num_items + 1
    sorted_pairs = whole.users.astype(np.int64) * width + whole.items
    wanted = users * width + items
    place = np.minimum(np.searchsorted(sorted_pairs, wanted), len(sorted_pairs) - 1)
    found = np.where(sorted_pairs[place] == wanted, whole.values[place], np.nan)
    return found.astype(np.float32)
