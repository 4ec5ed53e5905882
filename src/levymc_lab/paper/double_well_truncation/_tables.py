"""Tables of the experiment `double_well_truncation`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from levymc_lab.framework import CellResult, Table, Tables

from . import _plan as plan

DROP = (6.5, 8.5)  # hK between which the truncation's error vanishes


def summarise(config: plan.Truncation, results: Mapping[str, CellResult]) -> Tables:
    points = plan.points(config)
    laws = {alpha: results[f"laws-alpha={alpha:g}"] for alpha in config.alphas}
    sweeps = [name for name, part in plan.settings(config).items() for _ in part]
    fields = ("h", "K", "bias", "tv", "left_mass_error", "wells")
    return {
        "published": Table(
            "Figure 3: mean |bias| as published and as measured here over the same number of "
            "repeats; the lower panel with K as in the text and with the K that fits.",
            {
                **{name: points[name] for name in ("panel", "alpha", "h", "K")},
                "published": points["y"],
                "measured": results["published"]["bias"],
            },
        ),
        "equilibrium": Table.stack(
            "Stationary law with b̃ against that with the exact drift, on one grid. The sweep h has "
            f"K so large that it does not matter; the sweep K has h = {plan.SPACING}. Wells: "
            "points that b̃ leads to from both sides. At α = 1.9 biases below 1e-4 still depend on "
            "the grid; total variations do not.",
            (
                {"sweep": sweeps, "alpha": a, **{name: r[name] for name in fields}}
                for a, r in laws.items()
            ),
        ),
        "grid": Table.stack(
            "The grid: what it finds for the exact drift, against the target; and the "
            "total variation between the laws at h = 0.06, K = 15 on it and on a wider one.",
            (
                {"alpha": a, "tv": r["floor_tv"], "bias": r["floor_bias"], "wider": r["end"]}
                for a, r in laws.items()
            ),
        ),
        "rates": Table.stack(
            "Fitted exponents: of total variation and |bias| in h; of total variation in hK, from "
            "6.5 to 8.5; of the best h in K, with its mean reach hK. And the largest |bias| over "
            "h² + 1/(hK).",
            (_rates(config, a, r) for a, r in laws.items()),
        ),
        "chains": Table.stack(
            f"Chains at α = {config.chain_alpha:g}, with η = {config.step_size:g} and tamed steps, "
            f"after {config.chain_time:g} units of time, beside the stationary law. Of the "
            "means little can be said: jumps far out come back by at most 0.5 a step.",
            (
                _chain_row(config, h, count, results[f"chains-h={h:g}-K={count}"])
                for h, count in zip(config.chain_h, config.chain_terms, strict=True)
            ),
        ),
    }


def _rates(config: plan.Truncation, alpha: float, law: CellResult) -> dict[str, float]:
    sweeps = np.array([name for name, part in plan.settings(config).items() for _ in part])
    h, reach = law["h"], law["h"] * law["K"]
    full = sweeps == "h"
    falling = (sweeps == "K") & (reach > DROP[0] - 0.01) & (reach < DROP[1] + 0.01)
    best = [_best(h, law["tv"], (sweeps == "best h") & (law["K"] == k)) for k in config.counts]
    return {
        "alpha": alpha,
        "tv_in_h": _slope(h[full], law["tv"][full]),
        "bias_in_h": _slope(h[full], np.abs(law["bias"][full])),
        "tv_in_reach": _slope(reach[falling], law["tv"][falling]),
        "best_h_in_K": _slope(np.array(config.counts), np.array(best)),
        "best_reach": float(np.mean(np.array(best) * config.counts)),
        "bound": float(np.max(np.abs(law["bias"]) / (h**2 + 1 / reach))),
    }


def _slope(x: np.ndarray, y: np.ndarray) -> float:
    """Of log y in log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _best(h: np.ndarray, error: np.ndarray, chosen: np.ndarray) -> float:
    return float(h[chosen][np.argmin(error[chosen])])


def _chain_row(config: plan.Truncation, h: float, count: int, result: CellResult) -> dict[str, Any]:
    names = ("left_mass_error", "law_left_mass_error", "bias", "law_bias", "tv", "law_tv", "hops")
    row = {name: float(result[name]) for name in names}
    return {"h": h, "K": count, "num_chains": config.num_chains, **row}
