"""The ids of a table: whole numbers where all are, else text."""

import re
from collections.abc import Iterable

import numpy as np

LONGEST_ID = 200  # an array of text has the width of its longest entry
PLAIN_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # one way to write each, so that none merge


def order_of(texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """The ids in ascending order, and for each text its place among them."""
    given = list(texts)
    is_numeric = all(PLAIN_NUMBER.fullmatch(text) for text in given)
    ids = np.array(given, np.int64 if is_numeric else np.str_)
    order = np.argsort(ids, kind="stable")
    place = np.empty(len(ids), np.uint32)
    place[order] = np.arange(len(ids), dtype=np.uint32)
    return ids[order], place
