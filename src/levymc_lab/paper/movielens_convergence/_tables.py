"""Tables of the experiment `movielens_convergence`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from levymc_lab.framework import Cell, CellResult, Table, Tables

from ._chains import BY_ID, variants_of


def summarise(config: Any, cells: Sequence[Cell], results: Mapping[str, CellResult]) -> Tables:
    by_task = {does: [c for c in cells if c["does"] == does] for does in ("fit", "ablate", "tune")}
    fits = [(cell["alpha"], results[cell.id]) for cell in by_task["fit"]]
    return {
        "fits": Table.stack(
            "The start and a nearest to each published curve: mean entry of the factors, their "
            "spread, a, and the mean distance of the curve; and that of SGLD from the same start "
            "with the step c_α η.",
            (_fit_row(alpha, result) for alpha, result in fits),
        ),
        "ablation": Table.stack(
            "From one start with one a: error of the last draw for each part of the step; mean, "
            "least and largest over seeds.",
            (row for cell in by_task["ablate"] for row in _ablation(cell, results[cell.id])),
        ),
        "tuned": Table.stack(
            "With a tuned on the validation split: error of the last draw on the test split.",
            (_tuned_row(cell, results[cell.id]) for cell in by_task["tune"]),
        ),
        "curves": Table.stack(
            "All curves: as published, from one start (common), and tuned; means over seeds.",
            _curves(by_task, results),
        ),
    }


def _fit_row(alpha: float, result: CellResult) -> dict[str, Any]:
    beside = abs(result["sgld"] - result["measured"]).mean()
    names = ("mean", "scale", "a", "distance")
    return {"alpha": alpha, **{n: float(result[n]) for n in names}, "sgld_distance": beside}


def _ablation(cell: Cell, result: CellResult) -> Iterator[dict[str, Any]]:
    for variant in variants_of(cell["alpha"]):
        last = result[variant.id][:, -1]
        yield {
            "alpha": cell["alpha"],
            "step": variant.name,
            "error": last.mean(),
            "least": last.min(),
            "largest": last.max(),
        }


def _tuned_row(cell: Cell, result: CellResult) -> dict[str, Any]:
    last = result["measured"][:, -1]
    return {
        "set": cell["set"],
        "source": str(result["source"]),
        "alpha": cell["alpha"],
        "step": BY_ID[cell["variant"]].name,
        "a": float(result["a"]),
        "error": last.mean(),
        "least": last.min(),
        "largest": last.max(),
        "seeds": len(last),
    }


def _curves(
    by_task: Mapping[str, Sequence[Cell]], results: Mapping[str, CellResult]
) -> Iterator[dict[str, Any]]:
    def part(kind: str, cell: Cell, step: str, values: Any) -> dict[str, Any]:
        base = {"kind": kind, "set": cell["set"], "alpha": cell["alpha"], "step": step}
        return {**base, "n": results[cell.id]["steps"], "error": values.round(4)}

    for cell in by_task["fit"]:
        for name in ("published", "measured", "sgld"):
            yield part("as published", cell, name, results[cell.id][name])
    for cell in by_task["ablate"]:
        for variant in variants_of(cell["alpha"]):
            yield part("common", cell, variant.name, results[cell.id][variant.id].mean(axis=0))
    for cell in by_task["tune"]:
        name = BY_ID[cell["variant"]].name
        yield part("tuned", cell, name, results[cell.id]["measured"].mean(axis=0))
