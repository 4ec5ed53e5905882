"""Which columns of a table hold user, item and rating."""

import math
import operator
from collections.abc import Sequence

import numpy as np

USER_NAMES = ("user",)
ITEM_NAMES = ("item", "movie", "film", "product", "book")
RATING_NAMES = ("rating", "score", "stars")
NEEDED = 3
LARGEST = float(np.finfo(np.float32).max)


def choose_columns(
    first: list[str], wanted: Sequence[str | int] | None
) -> tuple[tuple[int, ...], bool]:
    """The places of user, item and rating, and whether the first line is a header.

    Raises:
        ValueError: there are no such columns.
    """
    if len(first) < NEEDED:
        raise ValueError(
            f"{len(first)} fields. Expected a user, an item and a rating, separated by a comma, "
            "a semicolon, a tab or '::'."
        )
    names = [name.strip() for name in first]
    places = (_named(names) or (0, 1, 2)) if wanted is None else _wanted(names, wanted)
    return places, _is_header(names[places[2]])


def finite(text: str) -> float:
    """A number that is finite in single precision, as Python writes it but for underscores.

    Raises:
        ValueError: it is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST or "_" in text:  # NaN fails every comparison
        raise ValueError(f"rating {text.strip()!r} is no finite number.")
    return value


def _is_header(text: str) -> bool:
    """Whether the place of a rating holds no number at all."""
    try:
        float(text)
    except ValueError:
        return True
    return False


def _named(names: list[str]) -> tuple[int, ...] | None:
    """The columns by usual names, where each is there once."""
    places = []
    for beginnings in (USER_NAMES, ITEM_NAMES, RATING_NAMES):
        found = [k for k, name in enumerate(names) if name.lower().startswith(beginnings)]
        if len(found) != 1:
            return None
        places += found
    return tuple(places)


def _wanted(names: list[str], wanted: Sequence[str | int]) -> tuple[int, ...]:
    if len(wanted) != NEEDED or isinstance(wanted, str):
        raise ValueError(f"`columns` must be those of user, item and rating, got {wanted!r}.")
    places = tuple(_place(names, one) for one in wanted)
    if len(set(places)) != NEEDED:
        raise ValueError(f"`columns` must be three different ones, got {wanted!r}.")
    return places


def _place(names: list[str], one: str | int) -> int:
    if isinstance(one, str):
        if names.count(one) != 1:
            raise ValueError(f"no single column {one!r}. There are {', '.join(names)}.")
        return names.index(one)
    place = operator.index(one)
    if not 0 <= place < len(names):
        raise ValueError(f"no column {place}. There are {len(names)}, counted from 0.")
    return place
