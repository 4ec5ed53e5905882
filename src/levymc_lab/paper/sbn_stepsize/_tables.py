"""The tables of the experiment `sbn_stepsize`, from those cells that there are."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from levymc_lab.framework import Cell, CellResult, Table, Tables

from .._published import published
from ._annealing import PARTICLES

NAMES = {
    "sgfla": "SG-FLA",
    "sgld": "SGLD, step c_α η",
    "normal": "Gaussian noise of the same scale",
    "sgd": "SGD, step c_α η",
    "warm": "SG-FLA, warm start",
    "best": "SG-FLA, warm start, decreasing steps",
    "polya": "SG-FLA, Pólya–Gamma sweeps",
}
FIGURE = "fig6_sbn_loglik_vs_eta"
PICTURES = ("weights", "originals", "reconstructions", "fantasies")


def summarise(config: Any, cells: Sequence[Cell], results: Mapping[str, CellResult]) -> Tables:
    done = [cell for cell in cells if cell.id in results]
    runs = [cell for cell in done if cell["kind"] != "annealing"]
    tables = {}
    if runs:
        tables["runs"] = Table.stack(
            "Each run: the likelihood of test images a digit, by annealed importance sampling with "
            f"{config.num_temperatures} temperatures, and its standard error over the images; the "
            "spread and the largest of the weights; seconds of one core.",
            (_row(config, cell, results[cell.id]) for cell in runs),
        )
        tables |= _grid(config, tables["runs"])
    traced = [cell for cell in runs if cell["length"] == config.num_iterations]
    if traced:
        tables["traces"] = Table.stack(
            "Likelihoods through the long runs, of fewer images.",
            (_trace(config, cell, results[cell.id]) for cell in traced),
        )
    if "annealing" in results:
        tables |= _annealing(config, results["annealing"])
    shown = [cell for cell in done if cell["kind"] == "best"]
    if shown:
        cell = min(shown, key=lambda cell: cell["alpha"])
        tables["pictures"] = Table.stack(
            "Greys, from top left to bottom right, of 8 bits each in base 64, of the network that "
            f"was trained with decreasing steps and a warm start at α = {cell['alpha']:g}.",
            _pictures(results[cell.id]),
        )
    return tables


def _grid(config: Any, runs: Table) -> dict[str, Table]:
    """SG-FLA's runs beside the figure's, of the longest length that each α and step has."""
    plain = runs.where(sampler=NAMES["sgfla"], sweeps=config.sweeps)
    points = sorted({(row["alpha"], row["step"]) for row in plain.rows()}, reverse=True)
    rows = [_point(plain.where(alpha=alpha, step=step)) for alpha, step in points]
    caption = "SG-FLA with constant steps: mean over seeds, half their range, and the figure's."
    return {"grid": Table.stack(caption, rows)} if rows else {}


def _point(runs: Table) -> dict[str, Any]:
    longest = runs.where(iterations=runs["iterations"].max())
    values = longest["loglikelihood"]
    alpha, step = float(longest["alpha"][0]), float(longest["step"][0])
    return {
        "alpha": alpha,
        "step": step,
        "iterations": int(longest["iterations"][0]),
        "seeds": len(values),
        "loglikelihood": float(values.mean()),
        "half_range": float(np.ptp(values)) / 2,
        "published": float(published(FIGURE).where(alpha=alpha, x=step)["y"][0]),
    }


def _given(config: Any, cell: Cell) -> dict[str, Any]:
    return {
        "sampler": NAMES[cell["kind"]],
        "alpha": cell["alpha"],
        "step": cell["step"],
        "sweeps": cell.parameters.get("sweeps", config.sweeps),
        "iterations": cell["length"],
        "seed": cell["seed"],
    }


def _row(config: Any, cell: Cell, result: CellResult) -> dict[str, Any]:
    measured = ("loglikelihood", "error", "spread", "largest", "divergences", "seconds")
    return {**_given(config, cell), **{name: result[name] for name in measured}}


def _trace(config: Any, cell: Cell, result: CellResult) -> dict[str, Any]:
    return {
        **_given(config, cell),
        "iteration": result["marks"],
        "loglikelihood": result["trace"],
    }


def _annealing(config: Any, result: CellResult) -> dict[str, Table]:
    both = {
        "temperatures": np.array(config.temperatures),
        **{name: result[name] for name in ("first", "last", "below", "above")},
    }
    return {
        "annealing": Table(
            "Estimates of the mean log-likelihood: of test images, with the weight first, which is "
            "right, and last; of simulated images from below and from above.",
            both,
        ),
        "enumerated": Table(
            f"A network of {config.small_hidden} hidden units, whose likelihood can be added up, "
            f"beside annealing with one particle and with {PARTICLES}.",
            {
                "temperatures": [config.num_temperatures],
                "exact": [float(result["small_exact"])],
                "one_particle": [float(result["small_one"])],
                "annealed": [float(result["small_annealed"])],
            },
        ),
    }


def _pictures(result: CellResult) -> list[dict[str, Any]]:
    return [
        {"what": what, "number": number, "pixels": base64.b64encode(greys.tobytes()).decode()}
        for what in PICTURES
        for number, greys in enumerate(np.asarray(result[what]))
    ]
