r"""Table 1: after how many terms b̃ is as far off as b̂, and how far off that is.

.. math:: \hat κ(α) = \operatorname{mean}_x \operatorname*{argmin}_{1 ≤ K ≤ K^*}
   \Bigl|\, |\tilde b_{h,K}(x) - \tilde b_{h,K^*}(x)| - |\hat b(x) - \tilde b_{h,K^*}(x)|\, \Bigr|,
   \qquad h = 0.06, \quad K^* = 170.

Beside it, the relative errors of b̂ and of b̃_{h,K*} against the exact drift, and the r of
Corollary 2, the spacing at which b̃ would be b̂:

.. math:: r(x) = h\, |\hat b(x) / \tilde b_{h,K^*}(x)|^{1/(2-α)} .

References: [simsekli2017], Table 1, Corollary 2.  Departures: the table comes out with 201 points
at distances of 0.05; the text speaks of 200, which are measured, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from levymc import drifts, riesz
from levymc_lab.framework import Cell, CellResult, Experiment, Table, Tables

from .. import _double_well as well
from ._checks import PUBLISHED, checks, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPACING, MOST_TERMS = 0.06, 170  # the paper's h and K*
LIMIT = 5.0


@dataclass(frozen=True)
class DriftAccuracy:
    """Sizes: `num_shown` points of the curves in the figure."""

    num_shown: int
    alphas: tuple[float, ...] = tuple(PUBLISHED)
    num_points: int = 201
    num_points_in_text: int = 200


def cells(config: DriftAccuracy) -> list[Cell]:
    """One for each α; nothing is random."""
    return [Cell(f"alpha={alpha:g}", {"alpha": alpha}) for alpha in config.alphas]


def run_cell(config: DriftAccuracy, cell: Cell, key: Any) -> CellResult:
    counts = (config.num_points, config.num_points_in_text, config.num_shown)
    own, text, shown = (np.linspace(-LIMIT, LIMIT, count) for count in counts)
    every = all_drifts(np.concatenate([own, text, shown]), cell["alpha"])
    ends = np.cumsum(counts)[:2]
    parts = {name: np.split(values, ends) for name, values in every.items()}
    exact = parts["exact"][0]
    return {
        "kappa": kappa(own, parts["leading"][0], cell["alpha"]),
        "kappa_text": kappa(text, parts["leading"][1], cell["alpha"]),
        "error_leading": np.abs(parts["leading"][0] / exact - 1),
        "error_truncated": np.abs(parts["truncated"][0] / exact - 1),
        "x": shown,
        **{name: part[2] for name, part in parts.items()},
    }


def all_drifts(x: Float[np.ndarray, " n"], alpha: float) -> dict[str, np.ndarray]:
    """The exact drift, b̃ at the paper's h and K*, and b̂."""
    paper = {"spacing": SPACING, "num_terms": MOST_TERMS}
    made = {
        "exact": well.exact_drift(alpha, 128),
        "truncated": drifts.centered_difference(well.target, alpha, **paper),
        "leading": drifts.leading_term(well.target, alpha),
    }
    return {name: np.asarray(jax.vmap(drift)(jnp.asarray(x))) for name, drift in made.items()}


def partial_sums(x: Float[np.ndarray, " n"], alpha: float) -> Float[np.ndarray, "n K"]:
    """b̃_{h,K} for K = 1, …, K*."""
    k = np.arange(-MOST_TERMS, MOST_TERMS + 1)
    places = jnp.asarray(x[:, None] - SPACING * k)
    slopes = jax.vmap(jax.vmap(jax.grad(well.target)))(places)
    terms = np.asarray(slopes * jnp.exp(well.target(places) - well.target(x[:, None])))
    weights = riesz.unchecked_coefficients(np.float64(alpha - 2), MOST_TERMS)
    weights *= SPACING ** (2 - alpha)
    middle = terms[:, MOST_TERMS, None]
    pairs = terms[:, MOST_TERMS + 1 :] + terms[:, :MOST_TERMS][:, ::-1]
    return weights[0] * middle + np.cumsum(weights[1:] * pairs, axis=1)


def kappa(x: Float[np.ndarray, " n"], leading: Float[np.ndarray, " n"], alpha: float) -> float:
    """κ̂(α) on the points x, where b̂ is given."""
    sums = partial_sums(x, alpha)
    reference = sums[:, -1:]
    distance = np.abs(leading[:, None] - reference)
    return float(np.mean(1 + np.argmin(np.abs(np.abs(sums - reference) - distance), axis=1)))


def corollary_radius(leading: np.ndarray, truncated: np.ndarray, alpha: float) -> np.ndarray:
    """r(x) of Corollary 2."""
    return SPACING * np.abs(leading / truncated) ** (1 / (2 - alpha))


def summarise(config: DriftAccuracy, results: Mapping[str, CellResult]) -> Tables:
    by_alpha = {alpha: results[f"alpha={alpha:g}"] for alpha in config.alphas}
    return {
        "kappa": Table.stack(
            f"κ̂ on {config.num_points} points and on the {config.num_points_in_text} of the text; "
            "relative errors on the former against the exact drift, of b̂ and of b̃ at h = "
            f"{SPACING:g}, K = {MOST_TERMS}: median and 90th percentile over the points, and "
            "median under the target.",
            (_row(config, alpha, result) for alpha, result in by_alpha.items()),
        ),
        "drifts": Table.stack(
            "The drifts, and r of Corollary 2.",
            (_curves(alpha, result) for alpha, result in by_alpha.items()),
        ),
    }


def _row(config: DriftAccuracy, alpha: float, result: CellResult) -> dict[str, Any]:
    weights = well.density(np.linspace(-LIMIT, LIMIT, config.num_points))
    row = {"alpha": alpha, "published": PUBLISHED[alpha], "kappa": result["kappa"]}
    row |= {"kappa_text": result["kappa_text"]}
    for name in ("leading", "truncated"):
        errors = result[f"error_{name}"]
        row[f"{name}_median"] = np.median(errors)
        row[f"{name}_90"] = np.quantile(errors, 0.9)
        row[f"{name}_under_target"] = _weighted_median(errors, weights)
    return row


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values)
    levels = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][np.searchsorted(levels, 0.5)])


def _curves(alpha: float, result: CellResult) -> dict[str, Any]:
    names = ("x", "exact", "truncated", "leading")
    radius = corollary_radius(result["leading"], result["truncated"], alpha)
    return {"alpha": alpha, **{name: result[name] for name in names}, "radius": radius}


def figures(config: DriftAccuracy, tables: Tables) -> "dict[str, Figure]":
    from ._figure import draw

    return {"drift-accuracy": draw(tables)}


EXPERIMENT = Experiment(
    name="drift-accuracy",
    title="How accurate the leading term is",
    paper_item="Table 1",
    question="To how many terms of the sum does the leading term amount, and how accurate is it?",
    profiles={
        "quick": DriftAccuracy(num_shown=240),
        "paper": DriftAccuracy(num_shown=1200),
    },
    captions={
        "drift-accuracy": "Top: the exact drift, the truncated sum and the leading term, and their "
        "relative errors. Bottom: κ̂, published and measured, and r(x) of Corollary 2."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
)
