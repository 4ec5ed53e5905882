"""Which columns of a table are wanted, by headings, names or numbers."""

import operator
import re
from collections.abc import Sequence

from ._lines import Layout

SEPARATED = "separated by a comma, a semicolon, a tab or '::'."
ROLES = ("user", "item", "rating", "time")
# A heading is made of such words only: `user17` or `book of tea` may well be an id.  Those further
# down in the list decide: a `user rating` is a rating, a `rating time` a time.
WORDS = {
    "user": "user person people customer reviewer rater member reader viewer uid",
    "item": "item movie film product book song track title isbn asin iid",
    "rating": "rating score star rate grade",
    "time": "time timestamp date datetime",
}
SHORT_WORDS = {"user": "u who", "item": "i what", "rating": "r how much"}  # not in pairs alone
FILLERS = frozenset(["id", "ids", "name", "number", "no", "key", "code"])
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_]+|\d+")


def heading(text: str, *, short: bool = True) -> str | None:
    """What a heading names, one of `ROLES`; None for what is no heading.

    >>> [heading(text) for text in ("userId", "Book-Rating", "ratings_date", "user17", "tea")]
    ['user', 'rating', 'time', None, None]
    """
    words = [word.lower() for word in WORD.findall(text)]
    known = {role: _forms(WORDS[role]) for role in ROLES}
    if short:
        known |= {role: known[role] | _forms(words) for role, words in SHORT_WORDS.items()}
    if not words or not all(word in FILLERS.union(*known.values()) for word in words):
        return None
    found = [role for role in ROLES if known[role].intersection(words)]
    return found[-1] if found else None


def _forms(words: str) -> frozenset[str]:
    return frozenset(form for word in words.split() for form in (word, f"{word}s"))


def layout(
    first: list[str], second: list[str] | None, wanted: Sequence[str | int] | None
) -> Layout:
    """The places of user, item and rating, and whether the first line is a header."""
    names = [name.strip() for name in first]
    if wanted is not None:
        are_numbers = all(_is_place(one, len(names)) for one in wanted)
        places = _wanted(names, wanted, are_numbers=are_numbers)
        if not are_numbers and any(one in names for one in wanted):
            return places, True
        if names == [str(place) for place in range(len(names))]:
            raise ValueError(
                f"{', '.join(names)} may be a header or a row. Remove the line, or put a header "
                "with names above it."
            )
    elif len(first) < 3:
        raise ValueError(f"{len(first)} fields. Expected a user, an item and a rating, {SEPARATED}")
    else:
        places = _usual(names)
    if _is_number(names[places[2]]):
        return places, False
    return places, _is_header(names, second)


def _is_header(names: list[str], second: list[str] | None) -> bool:
    """Whether there is a heading, or a word where the next row has a number."""
    return any(map(heading, names)) or _is_above_numbers(names, second)


def _is_above_numbers(names: list[str], second: list[str] | None) -> bool:
    """Whether there are words, and below more than one of them numbers."""
    below = (second or [])[: len(names)]
    return not any(map(_is_number, names)) and sum(map(_is_number, below)) > 1


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _usual(names: list[str]) -> tuple[int, ...]:
    """The columns by their headings, or the first three, unless headings speak against that."""
    columns = {role: _column(names, role) for role in ROLES[:3]}
    places = tuple(place for place in columns.values() if place is not None)
    if len(places) == 3:
        return places
    headings = [heading(name) for name in names]
    is_told = any(headings) and not _is_number(names[2])
    if is_told and any(
        found not in (None, role) for role, found in zip(ROLES, headings[:3], strict=False)
    ):
        raise ValueError(
            f"the header {', '.join(names)} leaves open which columns are user, item and rating. "
            "Name them: --columns user,item,rating, say."
        )
    return (0, 1, 2)


def _column(names: list[str], role: str, *, short: bool = True) -> int | None:
    """The column of a role: the only one or, of several, the only one that is shortest or an id."""
    found = [k for k, name in enumerate(names) if heading(name, short=short) == role]
    if len(found) > 1:
        plain = [k for k in found if len(WORD.findall(names[k])) == 1]
        ids = [k for k in found if WORD.findall(names[k])[-1].lower() in ("id", "isbn", "asin")]
        found = ids if role != "rating" and len(ids) == 1 else plain
    return found[0] if len(found) == 1 else None


def _wanted(names: list[str], wanted: Sequence[str | int], *, are_numbers: bool) -> tuple[int, ...]:
    if len(wanted) not in (3, 4) or isinstance(wanted, str):
        raise ValueError(
            f"`columns` must be those of user, item and rating, and perhaps time, got {wanted!r}."
        )
    places = tuple(_place(names, int(one) if are_numbers else one) for one in wanted)
    if len(set(places)) != len(places):
        raise ValueError(f"`columns` must be three different ones, or four, got {wanted!r}.")
    return places


def _is_place(one: str | int, width: int) -> bool:
    """Whether it is the number of a column; an id of the first row may be the same text."""
    return not isinstance(one, str) or (one.isdecimal() and int(one) < width)


def _place(names: list[str], one: str | int) -> int:
    if isinstance(one, str) and (one in names or not one.isdecimal()):
        if names.count(one) != 1:
            raise ValueError(
                f"no single column {one!r}. There are {', '.join(names)}. Without a header, give "
                "numbers from 0."
            )
        return names.index(one)
    place = int(one) if isinstance(one, str) else operator.index(one)
    if not 0 <= place < len(names):
        raise ValueError(f"no column {place}. There are {len(names)}, counted from 0.")
    return place


def layout_of_pairs(first: list[str], second: list[str] | None) -> Layout:
    """The places of user and item, by their headings if the line is one of headings.

    What looks like headings and tells no user and item is refused: pairs the wrong way round are
    predicted like others where an id may be a user's and an item's.
    """
    if len(first) < 2:
        raise ValueError(f"1 field. Expected a user and an item, {SEPARATED}")
    names = [name.strip() for name in first]
    is_header = _is_above_numbers(names, second)
    for short in (False, True) if is_header else (False,):
        user, item = (_column(names, role, short=short) for role in ("user", "item"))
        if user is not None and item is not None:
            return (user, item), True
    told = [heading(name, short=False) for name in names[:2]]
    is_crossed = any(found not in (None, role) for role, found in zip(ROLES, told, strict=False))
    if is_crossed or is_header:
        raise ValueError(
            f"the header {', '.join(names)} leaves open which columns are user and item. Head "
            "these user and item; or if this is a pair, put a header above it."
        )
    return (0, 1), False
