"""What an experiment is made of."""

import dataclasses
import difflib
import hashlib
import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import jax

from ._check import Check, Verdict
from ._table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tables = Mapping[str, Table]
CellResult = Mapping[str, Any]
SUFFIXES = ("png", "svg")  # of figures
REAL, SYNTHETIC = "real", "synthetic"  # data, as an experiment's `sources` has them


@dataclass(frozen=True)
class Cell:
    """An independent unit of work.

    id: unique in its experiment, and a file name: letters, digits and ``. _ = + -``.
    parameters: what `run_cell` needs to know; read as ``cell["alpha"]``.
    stream: the name of the random numbers, by default the id.  Cells that share it share their
        key, for comparisons with common random numbers.
    folder: where `run_cell` may keep what it needs to go on if it is killed, such as the store of a
        chain; it may not exist yet, and is removed once the cell is made.  None outside of `run`.
    """

    id: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    stream: str = ""
    folder: Path | None = None

    def __getitem__(self, name: str) -> Any:
        return self.parameters[name]

    def key(self, seed: int) -> jax.Array:
        """A key that depends on the seed and the stream only, not on the other cells."""
        digest = hashlib.sha256((self.stream or self.id).encode()).digest()
        key = jax.random.key(seed)
        for word in (digest[:4], digest[4:8]):  # 64 bits: streams do not collide by chance
            key = jax.random.fold_in(key, int.from_bytes(word, "big"))
        return key


@dataclass(frozen=True)
class Experiment:
    """See the package for what the functions take and give.

    name: as in ``levymc run NAME``.
    paper_item: such as "Figure 1".
    question: one sentence, which the verdict answers.
    profiles: configurations by name, ``quick`` and ``paper`` among them.
    captions: for every figure, by its name, a sentence that stands for it where it is not seen.
    dtype: of the computation.
    needs: of a configuration, raises ValueError with a remedy where something is missing without
        which no cell can be made, such as a data set.
    sources: of a configuration, "real" or "synthetic" for each data set that others may stand in
        for, as it would be read now.  The manifest keeps them: cells of both are not mixed, and
        what was made of synthetic data is not taken for finished once there are real ones.
    shows_parts: `summarise` takes the results of any of the cells but none, and what follows
        works on such tables: then a run that is not finished is shown by the cells it has.
    runs_alone: its cells measure seconds: one at a time, on this machine, whatever `jobs`.
    introduction: of an experiment that is no part of the paper: with these sentences, in the place
        of those on the paper, begins a page on it alone.
    terms: what words in tables and figures mean, for readers who have never met them.
    """

    name: str
    title: str
    paper_item: str
    question: str
    profiles: Mapping[str, Any]
    captions: Mapping[str, str]
    cells: Callable[[Any], Sequence[Cell]]
    run_cell: Callable[[Any, Cell, Any], CellResult]
    summarise: Callable[[Any, Mapping[str, CellResult]], Tables]
    checks: Callable[[Any, Tables], Sequence[Check]]
    verdict: Callable[[Any, Tables, Sequence[Check]], Verdict]
    figures: Callable[[Any, Tables], "Mapping[str, Figure]"]
    dtype: Literal["float32", "float64"] = "float64"
    needs: Callable[[Any], None] | None = None
    sources: Callable[[Any], Mapping[str, str]] | None = None
    shows_parts: bool = False
    runs_alone: bool = False
    introduction: str = ""
    terms: Mapping[str, str] = field(default_factory=dict)

    def config(self, profile: str) -> Any:
        """The configuration of a profile, or a ValueError that names those there are."""
        if profile not in self.profiles:
            raise ValueError(f"`profile` of {self.name}: {nearest(profile, self.profiles)}")
        return self.profiles[profile]

    def identity(self, profile: str, seed: int) -> dict[str, Any]:
        """What determines the numbers, versions apart, as it is read from JSON, and its digest.

        The sources of the data are beside the digest, so that older manifests keep theirs.
        """
        content = {
            "name": self.name,
            "profile": profile,
            "config": dataclasses.asdict(self.config(profile)),
            "seed": seed,
            "dtype": self.dtype,
        }
        text = json.dumps(content, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        sources = {"sources": dict(self.sources(self.config(profile)))} if self.sources else {}
        return {**json.loads(text), "digest": digest, **sources}

    def precision(self) -> AbstractContextManager[None]:
        """A context in which JAX computes in the experiment's dtype."""
        return jax.enable_x64(self.dtype == "float64")

    def checked_cells(self, config: Any) -> list[Cell]:
        """The cells; ids that are no file names or not unique are refused."""
        cells = list(self.cells(config))
        ids = [cell.id for cell in cells]
        for id in ids:
            if not re.fullmatch(r"[\w=+-][\w.=+-]*", id, re.ASCII):
                raise ValueError(f"The id of a cell must be a file name, got {id!r}.")
        if len({id.lower() for id in ids}) < len(ids):  # some file systems ignore case
            raise ValueError(f"The ids of cells must differ, got {sorted(ids)}.")
        return cells

    def tables(self, config: Any, results: Mapping[str, CellResult]) -> dict[str, Table]:
        """The tables of the cells' results."""
        with self.precision():
            return dict(self.summarise(config, results))

    def judge(self, config: Any, tables: Tables) -> tuple[list[Check], Verdict]:
        """The checks and the verdict."""
        with self.precision():
            checks = list(self.checks(config, tables))
            return checks, self.verdict(config, tables, checks)

    def draw(self, config: Any, tables: Tables) -> dict[tuple[str, str], bytes]:
        """Every figure, by its name and suffix."""
        from .style import rendered, styled

        with self.precision(), styled():
            figures = self.figures(config, tables)
            if set(figures) != set(self.captions):
                raise ValueError(
                    f"{self.name} draws {sorted(figures)} and has captions for "
                    f"{sorted(self.captions)}: give every figure its caption."
                )
            # Always all, in this order: the layout of one depends on those drawn before it.
            return {
                (name, suffix): rendered(figures[name], suffix)
                for name in self.captions
                for suffix in SUFFIXES
            }


def check_seed(seed: Any) -> int:
    """Return `seed` as an integer that JAX takes as it is, or refuse it."""
    number = operator.index(seed)
    if not 0 <= number < 2**32:
        raise ValueError(f"`seed` must lie in [0, 2^32), got {number}. Give a smaller one.")
    return number


def nearest(wrong: str, right: Iterable[str]) -> str:
    """A sentence with the names that look like `wrong`, or all of them.

    >>> nearest("stable-law", ["stable-laws", "invariance"])
    "there is no 'stable-law'. Did you mean stable-laws?"
    >>> nearest("x", ["stable-laws", "invariance"])
    "there is no 'x'. There are: stable-laws, invariance."
    """
    choices = list(right)
    close = difflib.get_close_matches(wrong.lower(), choices, cutoff=0.5)
    advice = f"Did you mean {' or '.join(close)}?" if close else f"There are: {', '.join(choices)}."
    return f"there is no {wrong!r}. {advice}"
