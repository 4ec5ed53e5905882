"""Tables: named columns of one length, as JSON and CSV and back."""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from levymc._workdir import parse_json

KINDS = {"f": "float", "i": "int", "u": "int", "b": "bool", "U": "str"}
DTYPES = {"float": np.float64, "int": np.int64, "bool": np.bool_, "str": np.str_}


@dataclass(frozen=True, eq=False)
class Table:
    """A caption and columns of numbers, truth values or texts.

    >>> table = Table("Squares.", {"x": [1, 2, 3], "square": [1.0, 4.0, 9.0]})
    >>> table.where(x=2)["square"]
    array([4.])
    """

    caption: str
    columns: Mapping[str, Any]

    def __post_init__(self) -> None:
        columns = {name: _column(name, values) for name, values in self.columns.items()}
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) != 1:
            raise ValueError(f"A table needs columns of one length, got {lengths}.")
        object.__setattr__(self, "columns", columns)

    @classmethod
    def stack(cls, caption: str, parts: Iterable[Mapping[str, Any]]) -> "Table":
        """Put parts below each other; a number or text stands for a column of it.

        >>> Table.stack("", [{"a": 1, "x": [5, 6]}, {"a": 2, "x": [7]}])["a"]
        array([1, 1, 2])
        """
        blocks = [
            dict(zip(part, np.broadcast_arrays(*map(np.atleast_1d, part.values())), strict=True))
            for part in parts
        ]
        if not blocks:
            raise ValueError("A table needs at least one part.")
        return cls(
            caption, {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
        )

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def where(self, **values: Any) -> "Table":
        """The rows whose columns have these values."""
        kept = np.ones(len(self), bool)
        for name, value in values.items():
            kept &= self[name] == value
        return Table(self.caption, {name: column[kept] for name, column in self.columns.items()})

    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries of Python values."""
        lists = [column.tolist() for column in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*lists, strict=True)]

    def to_csv(self) -> bytes:
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(row.values() for row in self.rows())
        return stream.getvalue().encode()

    def to_json(self) -> bytes:
        columns = {
            name: {"kind": KINDS[column.dtype.kind], "values": [_plain(v) for v in column.tolist()]}
            for name, column in self.columns.items()
        }
        content = {"caption": self.caption, "columns": columns}
        return (json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n").encode()

    @classmethod
    def from_json(cls, content: bytes) -> "Table":
        """The table that was written, every number as it was."""
        parsed = parse_json(content)
        columns: dict[str, np.ndarray] = {
            name: np.array(column["values"], DTYPES[column["kind"]])
            for name, column in parsed["columns"].items()
        }
        return cls(parsed["caption"], columns)


def _column(name: str, values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in KINDS:
        raise TypeError(
            f"Column {name!r} must be a vector of numbers, truth values or texts, "
            f"got {array.dtype} with shape {array.shape}."
        )
    return array.astype(DTYPES[KINDS[array.dtype.kind]])


def _plain(value: Any) -> Any:
    """JSON has neither NaN nor infinities: they are written as text, which float() reads."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
