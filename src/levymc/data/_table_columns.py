"""Which columns of a table hold user, item and rating."""

import operator
from collections.abc import Sequence

USER_NAMES = ("user",)
ITEM_NAMES = ("item", "movie", "film", "product", "book")
RATING_NAMES = ("rating", "score", "stars")
NEEDED = 3


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
    return places, not is_number(names[places[2]])


def is_number(text: str) -> bool:
    """Whether Python takes it as a number; underscores, which people do not write, apart."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


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
