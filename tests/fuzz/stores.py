"""Damaged stores, and what readers may do with them: read all draws, or refuse with a remedy."""

import itertools
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from tests.core import store_damage, stored_run

import levymc

NUM_STEPS = 400
RESUMED = 10  # every tenth damage is given to `resume`, too, which takes longer


def fuzz(count: int, seed: int = 0, first: int = 0) -> tuple[Counter, list[tuple[int, str]]]:
    """Tries by reader, and what went wrong, with the numbers of the damages."""
    tries: Counter = Counter()
    failures: list[tuple[int, str]] = []
    with tempfile.TemporaryDirectory() as place:
        store = Path(place) / "run"
        expected = stored_run.begin(store, NUM_STEPS)
        damages = store_damage.corruptions(store, np.random.default_rng(seed), first + count)
        for number, damage in enumerate(itertools.islice(damages, first, None), first):
            for name, read in _readers(number).items():
                tries[name] += 1
                wrong = store_damage.fault(damage, read, expected)
                failures += [(number, f"{name}: {wrong}")] if wrong else []
    return tries, failures


def _readers(number: int) -> dict[str, Any]:
    """Those that a damaged store is given to, the one that may write to it last."""
    resume = {} if number % RESUMED else {"resume": _resume}
    return {"load": levymc.load, **resume}


def _resume(folder: Path) -> levymc.Result:
    return levymc.resume(folder, progress=False)
