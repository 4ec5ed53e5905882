"""What tells a run from another: compared where a store is given to go on with."""

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import jax

from levymc._workdir import differences, versions

from . import _programs, marks
from ._engine import Feed, Fixed, position_of
from ._integrity import StoreError, fingerprint
from ._iterate import Run
from ._minibatches import Batches, Loader, Whole


def given(run: Run, program: str, data: dict[str, Any] | None = None) -> dict[str, Any]:
    """What tells a run from another; of its data, unless it is known."""
    starts = position_of(run.program.states(run.carry))
    marks_of_run = [marks.to_json(one) for one in (run.plan.kept, run.plan.seen) if one is not None]
    return {
        "algorithm": run.algorithm,
        "is_exact": run.is_exact,
        "num_steps": run.plan.num_steps,
        "burn_in": run.plan.burn_in,
        "marks": hashlib.sha256(json.dumps(marks_of_run).encode()).hexdigest(),
        "observe": list(run.names),
        "key": fingerprint([run.keys]),
        "numbers": fingerprint(run.parameters),
        "starts": fingerprint(jax.tree.leaves(starts)),
        **(given_data(run.feed, run.batch_size) if data is None else data),
        "program": program,
        **({"devices": run.num_devices} if run.num_devices > 1 else {}),
    }


def given_data(feed: Feed, batch_size: int | None) -> dict[str, Any]:
    """What tells the data of a run from others; of a function that loads them, its first batch."""
    if isinstance(feed, Fixed):
        return {"data": fingerprint(feed.leaves), "batch_size": batch_size}
    assert isinstance(feed, Loader)
    leaves, structure = jax.tree.flatten(feed.example)
    return {"minibatch": f"{structure} {fingerprint(leaves)}"}


def check_same_run(path: Path, header: dict[str, Any], run: Run) -> None:
    """Refuse a store that holds another run, and say what differs."""
    texts = _programs.texts_of(_programs.exported(run))
    check_given(path, header, given(run, _programs.identity(texts)))


def check_given(path: Path, header: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse a store that was begun with something else, and say what differs."""
    found = header["given"]
    if header["versions"] != versions():  # by which a program may be written otherwise
        found, wanted = ({**one, "program": None} for one in (found, wanted))
    changes = differences(found, wanted)
    if changes:
        raise StoreError(
            f"`store` must be a new folder, or that of this run, got {path}, which holds another: "
            f"{', '.join(changes)}. Name another folder, or remove it; levymc.resume(store) goes "
            "on with what it holds."
        )


def check_minibatches(path: Path, header: dict[str, Any], minibatches: Any) -> Feed | None:
    """The loader of a run, refused if it is not what the run was begun with."""
    is_fed, begun = header["is_fed"], f"{path} was begun with"
    function = "a function of the step's number. Give the same function to levymc.resume"
    if minibatches is None or isinstance(minibatches, Fixed):
        if is_fed:
            raise ValueError(f"`minibatches` must be given, as {begun} {function}.")
        return None
    is_function = isinstance(minibatches, Loader) or callable(minibatches)
    if is_fed != is_function or not (is_function or isinstance(minibatches, Batches | Whole)):
        what = function if is_fed else "data that it holds, or none. Leave them out"
        kind = type(minibatches).__name__
        raise TypeError(f"`minibatches` must not be {kind}, as {begun} {what}.")
    if isinstance(minibatches, Batches | Whole):
        leaves = jax.tree.leaves(minibatches.data)
        chosen = given_data(Fixed(leaves), getattr(minibatches, "batch_size", None))
        feed = None
    else:
        feed = minibatches if isinstance(minibatches, Loader) else Loader(minibatches)
        chosen = given_data(feed, None)
    known = {name: header["given"].get(name) for name in chosen}
    changes = differences(known, chosen)
    if changes:
        raise StoreError(
            f"`minibatches` must be those that {begun}: {', '.join(changes)}. Give the same, "
            "or begin a new run into another folder: the rest of this one would have another law."
        )
    return feed


def warn_of_devices(path: Path, header: dict[str, Any]) -> None:
    """Tell of a run over several devices of which the rest is made by one."""
    count = header["given"].get("devices", 1)
    if count != 1:
        warnings.warn(
            f"{path} was begun on {count} devices by levymc.iterate(..., mesh=...), and goes on "
            "here on one: what is left of the run is the same to rounding, not bit for bit. The "
            "same call of levymc.iterate goes on with all of them.",
            stacklevel=4,
        )


def warn_of_versions(path: Path, header: dict[str, Any]) -> None:
    """Tell of a program that was made by another version, which may round otherwise."""
    found, here = header["versions"], versions()
    others = [f"{name} {found.get(name)}" for name in here if found.get(name) != here[name]]
    if others:
        warnings.warn(
            f"{path} was begun with {', '.join(others)}: what is left of the run may differ "
            "in rounding from what an undisturbed run would have given.",
            stacklevel=6,
        )
