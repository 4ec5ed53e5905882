"""From what a person gives to a job that can be run, and whose folder it is; nothing is written."""

import json
import math
import os
import shutil
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

from levymc import models
from levymc._workdir import (
    Fields,
    MismatchError,
    differences,
    provenance,
    read_json,
    remove_partial,
    versions,
)
from levymc_lab import data

from ._fit import FORMAT, KIND
from ._table import (
    AS_IT_IS,
    DEFAULTS,
    FACTOR_SQUARE,
    HELD_OUT,
    STEP_SIZE,
    TRUNCATION,
    Reading,
    Scale,
    Settings,
    Table,
    batch_size_of,
    check_settings,
    digest_of,
    load_table,
    scale_of,
)

FIELDS: Fields = {  # of a manifest, what is relied on
    **dict.fromkeys(("identity", "versions"), dict),
    "status": str,
    "wall_seconds": (int, float),
    "noise": (int, float, NoneType),
}
REMEDY = "Name another folder (--out), or start anew and lose what it holds (--force)."
MOST_THREADS = 4  # more are of no use to the kernel


class Folder(NamedTuple):
    """Where things are."""

    path: Path
    chain: Path
    draws: Path
    predictions: Path
    factors: Path
    readme: Path
    manifest: Path

    @classmethod
    def at(cls, path: Path) -> "Folder":
        kept = ("predictions.csv", "factors.npz", "factors-README.md", "manifest.json")
        return cls(path, *(path / name for name in ("chain.zarr", "draws", *kept)))

    def draw(self, step: int) -> Path:
        """The file of a draw, until all of them are in one."""
        return self.draws / f"{step:09d}.npz"

    @property
    def files(self) -> tuple[Path, ...]:
        """What remains of a run; last the manifest, which names the rest."""
        return (self.predictions, self.factors, self.readme, self.manifest)

    def clear(self) -> None:
        """Remove what a run writes, and nothing else."""
        self.drop_chain()
        for file in self.files:
            file.unlink(missing_ok=True)

    def drop_chain(self) -> None:
        """Remove the store and the draws, which nobody needs once the outputs are there."""
        for folder in (self.chain, self.draws):
            shutil.rmtree(folder, ignore_errors=True)

    def tidy(self) -> None:
        """Remove what killed processes left half written."""
        for file in self.files:
            remove_partial(self.path, file.name)

    def is_finished(self, manifest: dict[str, Any]) -> bool:
        """Whether there is nothing left to do."""
        return (
            manifest["status"] == "finished" and self.predictions.exists() and self.factors.exists()
        )

    def check(self, identity: dict[str, Any]) -> dict[str, Any] | None:
        """The manifest of the run that is to go on, or None if there is none.

        Raises:
            MismatchError: the folder holds something else.
        """
        if not self.manifest.exists():
            # Ours are never without it: to go on would remove them.
            theirs = [one.name for one in self[1:] if one.exists()]
            if theirs:
                raise MismatchError(f"{self.path} holds {theirs[0]} of something else. {REMEDY}")
            return None
        if read_json(self.manifest, REMEDY).get("kind") != KIND:
            raise MismatchError(f"{self.path} holds results of another kind. {REMEDY}")
        found = read_json(self.manifest, REMEDY, FIELDS)
        changes = differences(found["identity"], identity)
        if not self.is_finished(found):  # half of a chain from another version is no chain
            changes += differences(found["versions"], versions())
        if changes:
            raise MismatchError(f"{self.path} holds another run: {', '.join(changes)}. {REMEDY}")
        return found


class Job(NamedTuple):
    """A fit that is ready to run.

    source: name of the file of ratings.
    asked: pairs to predict; None for those held out.
    bad: the rows that were left out, as file:line: reason.
    identity: all that the numbers depend on, but versions.
    """

    settings: Settings
    source: str
    table: Table
    scale: Scale
    asked: data.Pairs | None
    bad: tuple[str, ...]
    folder: Folder
    identity: dict[str, Any]
    num_threads: int
    starts_anew: bool

    @property
    def is_gibbs(self) -> bool:
        return self.settings.method == "gibbs"

    @property
    def draws(self) -> range:
        """The steps that count."""
        return self.settings.draws(self.table.whole.num_users + self.table.whole.num_items)


def prepare(
    ratings: str | os.PathLike[str],
    out: str | os.PathLike[str],
    settings: Settings = DEFAULTS,
    *,
    reading: Reading = AS_IT_IS,
    predict: str | os.PathLike[str] | None = None,
    num_threads: int | None = None,
    force: bool = False,
) -> Job:
    """Read and check everything, and write nothing.

    Args:
        ratings: a table of user, item and rating, also from a pipe, or - for the standard input;
            or MovieLens's file, folder or archive.
        out: folder of results; made if it is not there.
        settings: of the fit.
        reading: columns and scale of the table, and how many bad rows may be left out.
        predict: a table of users and items to predict; the held-out ratings if not given.
        num_threads: of the kernel; the numbers do not depend on it.
        force: start anew, over what the folder holds.

    Raises:
        DataError: a fault of a file, as file:line: reason.
        MismatchError: the folder holds another run.
        ValueError, OSError: settings outside their range; what cannot be read.
    """
    check_settings(settings)
    folder, source = Folder.at(Path(out)), Path(ratings)
    bad: list[str] = []
    table = load_table(source, settings.seed, reading, bad.append)
    scale = scale_of(table, settings.rank, reading.scale)
    asked = None if predict is None else data.read_pairs(predict)
    identity = {
        **settings._asdict(),
        "steps": settings.num_steps,
        "format": FORMAT,
        "ratings": table.digest,
        "scale": [end if math.isfinite(end) else None for end in scale.ends],
        "pairs": digest_of(asked),
        "backend": models.backend(),
    }
    if not force:
        folder.check(identity)
    threads = min(MOST_THREADS, os.cpu_count() or 1) if num_threads is None else num_threads
    return Job(
        settings, source.name, table, scale, asked, tuple(bad), folder, identity, threads, force
    )


def new_manifest(job: Job) -> dict[str, Any]:
    """What a fit was: enough to make it again, and nothing about whose machine it was."""
    whole, settings = job.table.whole, job.settings
    content = {
        "format": FORMAT,
        "kind": KIND,
        "identity": job.identity,
        "source": job.source,
        "num_ratings": whole.num_ratings,
        "num_users": whole.num_users,
        "num_items": whole.num_items,
        "bad_rows": list(job.bad),
        "held_out_share": HELD_OUT,
        "center": job.scale.center,
        "spread": job.scale.spread,
        "noise": settings.noise,
        "noise_is_estimated": settings.noise is None,
        "noise_error": None,
        "sampler": {
            "burn_in": settings.burn_in,
            "steps_between_draws": job.draws.step,
            "has_biases": True,
            **({} if job.is_gibbs else _gradient_steps(job)),
        },
        **provenance(),
    }
    return json.loads(json.dumps(content))  # as it will be read


def _gradient_steps(job: Job) -> dict[str, Any]:
    return {
        "batch_size": batch_size_of(job.table.training),
        "step_size": STEP_SIZE,
        "noise_truncated_at": TRUNCATION,
        "has_curvature_steps": True,
        "row_steps": {"s2": FACTOR_SQUARE, "c": job.settings.caution},
    }
