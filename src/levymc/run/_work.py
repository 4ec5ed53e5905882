"""Processes that share a run: each claims shards that nobody has, until all are complete.

A claim is the lock of the shard's own store.  It is the system's and ends with the process: the
shard of one that was killed is free at once, that of one that is merely stopped is not.  Devices of
one process claim shards in the same way, each in a thread of its own.
"""

import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
from jax.sharding import Mesh

from levymc._checks import check_count
from levymc._workdir import InUseError, lock, waiting_lock

from ._integrity import StoreError
from ._progress import progress_bar
from ._result import Result
from ._sample import Tally
from ._shards import (
    Shards,
    is_sharded,
    open_shards,
    publish,
    read_joined,
    shard_name,
    steps_made,
)
from ._store import Store, extended, glimpse, go_on, open_store

PAUSE = 0.5  # seconds between two looks at what others do
SECONDS_TO_DOUBT = 180.0  # without a commit: they come every half minute once all is compiled


def help_with(path: Path, minibatches: Any, *, progress: bool, mesh: Mesh | None = None) -> Tally:
    """Make shards until none is free."""
    if not is_sharded(path) and (path / "levymc" / "run.json").exists():
        raise StoreError(
            f"`store` must be a run in shards, got {path}, which has none. One process at a time "
            "makes it: go on with levymc.resume(store)."
        )
    made = 0
    open_shards(path)  # is it one?
    publish(path)
    while _unfinished(open_shards(path)):
        here = _make(path, minibatches, progress=progress, mesh=mesh)
        made += here
        if not here:
            break
    shards = open_shards(path)
    return Tally(made, len(shards.places), tuple(_unfinished(shards)))


def complete(path: Path, minibatches: Any, *, progress: bool, mesh: Mesh | None = None) -> Result:
    """Make what is left, with others who do, and read all of it; Ctrl-C gives what there is."""
    try:
        publish(path)
        while left := _unfinished(open_shards(path)):
            if not _make(path, minibatches, progress=progress, mesh=mesh):
                _wait(path, left, progress=progress)
    except KeyboardInterrupt:
        publish(path)
        if not all(store.num_draws for store in open_shards(path).stores(glimpse)):
            raise KeyboardInterrupt(
                f"The run was stopped before all chains had a draw. What was made is safe: go on "
                f"with levymc.resume({str(path)!r})."
            ) from None
    shards = open_shards(path)
    return read_joined(shards, shards.stores(open_store))


def extend(path: Path, num_steps: Any) -> None:
    """Let all shards make so many steps after the burn-in; None leaves it as it is."""
    if num_steps is None:
        return
    steps = check_count("num_steps", num_steps, "It is the number of steps of each chain.")
    with waiting_lock(path / "levymc"):
        shards = open_shards(path)
        if steps < shards.num_steps:
            raise ValueError(
                f"`num_steps` must be at least the {shards.num_steps} steps of the run, got "
                f"{steps}: some of its shards may have made them. levymc.load(store) reads what "
                "there is."
            )
        extended(glimpse(shards.places[0]), steps)
        shards.write(num_steps=steps)


def _unfinished(shards: Shards) -> list[int]:
    """The shards that have steps to make."""
    made = [steps_made(store) for store in shards.stores(glimpse)]
    return [number for number, steps in enumerate(made) if steps < shards.num_steps]


def _make(path: Path, minibatches: Any, *, progress: bool, mesh: Mesh | None) -> int:
    """Complete every shard that nobody else has, on one device or all of a mesh; how many."""
    devices = [] if mesh is None else list(mesh.local_devices)
    if len(devices) < 2:
        with jax.default_device(devices[0]) if devices else nullcontext():
            return _sweep(path, minibatches, progress=progress)
    halt = threading.Event()

    def on(device: Any) -> int:
        with jax.default_device(device):
            return _sweep(path, minibatches, progress=False, is_halted=halt.is_set)

    left = _unfinished(open_shards(path))
    with ThreadPoolExecutor(len(devices)) as pool:
        made = [pool.submit(on, device) for device in devices]
        try:
            _show(path, left, lambda _: _are_over(made), progress=progress)
        finally:
            halt.set()  # also where one of them failed
    failures = [error for one in made if (error := one.exception()) is not None]
    for error in sorted(failures, key=lambda one: isinstance(one, KeyboardInterrupt)):
        raise error  # rather than that it halted others
    return sum(one.result() for one in made)


def _are_over(made: "list[Future[int]]") -> bool:
    """Whether devices have made what they could, having waited for a moment; or one failed."""
    done, rest = wait_for(made, PAUSE, FIRST_EXCEPTION)
    return not rest or any(one.exception() is not None for one in done)


def _sweep(
    path: Path,
    minibatches: Any,
    *,
    progress: bool,
    is_halted: Callable[[], bool] = lambda: False,
) -> int:
    """Complete every shard that nobody else has; how many these were."""
    made = 0
    for number in _unfinished(open_shards(path)):
        if is_halted():
            break
        shards = open_shards(path)  # meanwhile others may have made it, or want more steps of it
        place, num_steps = shards.places[number], shards.num_steps
        if steps_made(glimpse(place)) >= num_steps:
            continue
        try:
            one = go_on(
                place, minibatches, progress=progress, num_steps=num_steps, is_halted=is_halted
            )
        except InUseError:
            continue
        if not one.is_whole:
            raise KeyboardInterrupt  # which had been heard by the loop over its steps
        publish(path)
        made += 1
    return made


def _wait(path: Path, left: list[int], *, progress: bool) -> None:
    """Until one of the shards that others make is complete, or free as its process ended."""
    shards = open_shards(path)
    places = [shards.places[number] for number in left]
    seen, since = 0, time.monotonic()

    def is_over(stores: list[Store]) -> bool:
        nonlocal seen, since
        if any(steps_made(store) >= shards.num_steps for store in stores):
            return True
        if (done := sum(store.done for store in stores)) != seen:
            seen, since = done, time.monotonic()
        elif time.monotonic() > since + SECONDS_TO_DOUBT:
            _warn_of_silence(left)
            since = float("inf")
        time.sleep(PAUSE)
        return not all(map(_is_claimed, places))

    if all(map(_is_claimed, places)):
        _show(path, left, is_over, progress=progress)


def _show(
    path: Path, left: list[int], is_over: Callable[[list[Store]], bool], *, progress: bool
) -> None:
    """Show by a bar what is committed of some shards, until it is over."""
    shards = open_shards(path)
    places, width = [shards.places[number] for number in left], shards.manifest["width"]
    total = sum(glimpse(place).plan.burn_in + shards.num_steps for place in places)
    is_shown = progress and sys.stderr.isatty()
    bar = progress_bar(total, width * len(places)) if is_shown else nullcontext(lambda *_: None)
    seen = 0
    with bar as report:
        while not is_over(stores := [glimpse(place) for place in places]):
            done = sum(store.done for store in stores)
            report(done - seen, 0)
            seen = done


def _is_claimed(place: Path) -> bool:
    try:
        with lock(place):
            return False
    except InUseError:
        return True


def _warn_of_silence(left: list[int]) -> None:
    names = ", ".join(map(shard_name, left[:5]))
    warnings.warn(
        f"Nothing was committed for {SECONDS_TO_DOUBT:.0f} s by the processes that have claimed "
        f"{names}. One that is stopped keeps its claim: let it go on, or end it, and its shards "
        "are taken over.",
        stacklevel=6,
    )
