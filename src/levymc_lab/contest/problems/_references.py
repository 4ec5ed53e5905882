"""Quantiles from long runs, with their standard errors, for problems without a better truth."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from ._problem import LEVELS, Marginal, Truth


@cache
def _stored() -> dict[str, Any]:
    text = files("levymc_lab.contest.problems").joinpath("long_runs.json").read_text("utf-8")
    return json.loads(text)


def quantiles_of(
    functions: Mapping[str, Callable[[np.ndarray], np.ndarray]], positions: np.ndarray
) -> dict[str, Any]:
    """Of a long run with axes (chain, draw, dimension): quantiles, and standard errors of them."""
    import arviz

    flat = positions.reshape(-1, positions.shape[-1])
    found = {}
    for name, of in functions.items():
        values = of(flat).reshape(positions.shape[:2])
        errors = [float(arviz.mcse(values, method="quantile", prob=level)) for level in LEVELS]
        quantiles = np.quantile(values, LEVELS)
        found[name] = {
            "quantiles": quantiles.round(6).tolist(),
            "errors": np.round(errors, 6).tolist(),
        }
    return found


def long_run(name: str, functions: Mapping[str, Callable[[np.ndarray], np.ndarray]]) -> Truth:
    """The truth of a problem as ``python -m levymc_lab.contest --long-run NAME`` printed it."""
    stored = _stored()[name]
    if set(stored) != set(functions):
        raise ValueError(f"The long run of {name} has {sorted(stored)}, not {sorted(functions)}.")
    marginals = tuple(
        Marginal(one, of, np.array(stored[one]["quantiles"]), np.array(stored[one]["errors"]))
        for one, of in functions.items()
    )
    return Truth("long run", (), marginals)
