"""The samplers of the contest, each within a budget of evaluations of the density.

One evaluation is one of the density, alone or with its gradient; those of all chains, of warm-up
and of tuning count.  Samplers that need a wide reference are told one that covers all of the mass.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax

from levymc_lab.contest.problems import Problem
from levymc_lab.framework import nearest

from . import _auto, _ensemble
from ._mala import mala
from ._nuts import nuts
from ._outcome import Modes as Modes
from ._outcome import Outcome as Outcome
from ._outcome import clocked as clocked
from ._smc import smc
from ._tempering import tempering

METHODS: dict[str, Callable[[Problem, Any, int], Outcome]] = {
    "auto": _auto.auto,
    "nuts-dense": partial(nuts, is_diagonal=False),
    "nuts-diagonal": partial(nuts, is_diagonal=True),
    "tempering": tempering,
    "smc": smc,
    "mala": mala,
    "emcee": _ensemble.emcee,
}


def missing(method: str) -> str:
    """Why a method cannot be run, or nothing.

    >>> missing("mala")
    ''
    """
    if method not in METHODS:
        return f"Methods: {nearest(method, METHODS)}"
    if method == "auto" and not _auto.is_there():
        return "levymc.auto is not in this version of levymc."
    if method == "emcee" and not _ensemble.is_there():
        return "emcee is not installed: pip install emcee."
    return ""


def run(problem: Problem, method: str, key: Any, budget: int) -> Outcome:
    """Run a method on a problem, and take the time.

    Raises:
        ValueError: there is no such method, or what it needs is missing.
    """
    if reason := missing(method):
        raise ValueError(reason)
    with clocked() as clock:
        outcome = METHODS[method](problem, key, budget)
        jax.block_until_ready(outcome.positions)
    return dataclasses.replace(outcome, seconds=clock.seconds, compiling=clock.compiling)
