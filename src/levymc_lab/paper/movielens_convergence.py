r"""Figure 5: the error of SG-FLA's predictions of ratings against the iterations, for several α.

.. math:: x' = x + η_n\, c_α\, \widehat{∇\log φ}(x; Ω) + η_n^{1/α}\, ξ, \qquad
   η_n = (a/n)^{0.51}, \qquad |Ω| = N/10,

with the error of the current draw, as in the figure.  Three questions: which start and a give the
published curves; what is left of "faster for smaller α" if all start alike, and to which part of
the step it is due; and how far each α comes if a is tuned on a validation split.  The first is
asked of all three data sets, the others of the first.

With exact noise and Euler's step every run with α < 2 diverges sooner or later (see
`movielens_stability`): here the drift's step of a row is bounded by its curvature.

References: [simsekli2017], Figure 5.  Departures: the paper tells neither the start nor a.  Where
the larger data sets are not in the cache, synthetic ratings of the same size stand in for them, and
are marked; once they are imported, the same command fits the curves to the true ratings.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc import models, schedules, stable
from levymc.riesz import leading_coefficient
from levymc_lab.framework import Cell, CellResult, Check, Experiment, Table, Tables, Verdict
from levymc_lab.framework.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILLION,
    alpha_colour,
    new_figure,
    note,
)

from . import _movielens as ml
from ._shared import DASHED, DOTTED, gathered, groups, heavy, published

FIGURES = {"ml-1m": "fig5_ml1m", "ml-10m": "fig5_ml10m", "ml-20m": "fig5_ml20m"}
TITLES = {"ml-10m": "MovieLens 10M", "ml-20m": "MovieLens 20M"}
START_SPREAD = 0.4  # of the factors on the larger sets: what fits best on the first
POWER = 0.51
NUM_MARKS = 50
AT_ONCE = 15  # iterations within which a published curve begins at the beginning
EARLY = 0.2  # of the iterations on a larger set, by which a is chosen there


class Variant(NamedTuple):
    """A step that shares some parts with SG-FLA's.

    alpha_two: SGLD with the step size c_α η in the place of η.
    law: of ξ: "stable", "truncated", "normal" (with the scale η^{1/α}) or "none".
    """

    id: str
    name: str
    alpha_two: bool = False
    law: str = "stable"


VARIANTS = (
    Variant("sgfla", "SG-FLA"),
    Variant("truncated", "SG-FLA, jumps ≤ 50", law="truncated"),
    Variant("normal", "Gaussian noise of the same scale", law="normal"),
    Variant("sgld", "SGLD, step c_α η", alpha_two=True),
    Variant("sgd", "SGD, step c_α η", law="none"),
)
BY_ID = {variant.id: variant for variant in VARIANTS}
GRADIENT, LEVY = BY_ID["sgld"].name, BY_ID["sgfla"].name
CLOSE = 0.1  # stars
NEEDS_A_START = (
    "The curves begin at errors of their own, at the very first iteration: they need a start that "
    "depends on α, and the paper tells none."
)
COLOURS = (VERMILLION, ORANGE, PURPLE, BLUE, GREEN)
DASHES = ("-", "-", DASHED, DOTTED, "-.")


def variants_of(alpha: float) -> tuple[Variant, ...]:
    """Those that differ at this α: at 2 all are SGLD, but for that without noise."""
    return VARIANTS if alpha < 2 else (VARIANTS[0], BY_ID["sgd"])


@dataclass(frozen=True)
class Convergence:
    """Sizes.

    first, length: the data set that is looked at most closely, and iterations on it; "small" is
        made.
    large, large_lengths: those of which the published curves alone are looked at.
    fit_a, tuned_a: values of a that are tried for the published curves and on the validation split.
    large_a: those that are tried for the published curves of the larger sets.
    """

    first: str
    length: int
    large: tuple[str, ...]
    large_lengths: tuple[int, ...]
    fit_a: tuple[float, ...]
    fit_scales: tuple[float, ...]
    tuned_a: tuple[float, ...]
    large_a: tuple[float, ...]
    num_seeds: int
    small_alphas: tuple[float, ...] = (2.0, 1.4)

    def alphas(self, name: str) -> tuple[float, ...]:
        """Those of the figure."""
        if name not in FIGURES:
            return self.small_alphas
        return tuple(sorted(set(published(FIGURES[name])["alpha"].tolist()), reverse=True))


def needs(config: Convergence) -> None:
    ml.check_there(config.first)


def cells(config: Convergence) -> list[Cell]:
    """The larger sets first, as they take longest."""
    found = [
        Cell(f"published-{name}", {"set": name, "length": length, "does": "large"})
        for name, length in zip(config.large, config.large_lengths, strict=True)
    ]
    name = config.first
    for alpha in config.alphas(name):
        base = {"set": name, "length": config.length, "alpha": alpha}
        found.append(Cell(f"fit-{name}-alpha={alpha:g}", {**base, "does": "fit"}))
        found.append(Cell(f"ablate-{name}-alpha={alpha:g}", {**base, "does": "ablate"}))
        for variant in variants_of(alpha):
            id = f"tune-{name}-{variant.id}-alpha={alpha:g}"
            found.append(Cell(id, {**base, "does": "tune", "variant": variant.id}))
    return found


def run_cell(config: Convergence, cell: Cell, key: Any) -> CellResult:
    does = {"fit": fit, "large": fit_large, "ablate": ablate, "tune": tune}
    return does[cell["does"]](config, cell, key)


def marks(length: int) -> np.ndarray:
    """Iterations at which the error is measured: dense at first."""
    spaced = np.geomspace(1, length, NUM_MARKS // 2), np.linspace(1, length, NUM_MARKS // 2)
    return np.unique(np.round(np.concatenate(spaced)).astype(int))


def sampler(part: ml.Part, variant: Variant, alpha: float, a: float) -> models.FastFactorization:
    """The variant at that α; the drift's step is bounded by the row's curvature."""
    scale = float(leading_coefficient(alpha - 2)) if variant.alpha_two else 1.0
    steps = schedules.polynomial(a * scale ** (1 / POWER), POWER)
    model = ml.fast(
        part,
        step_size=steps,
        alpha=2.0 if variant.alpha_two else alpha,
        curvature=True,
        truncation=ml.BOUND if variant.law == "truncated" else None,
    )
    if variant.law == "normal":
        model = ml.with_noise(model, jnp.asarray(stable.quantile_table(2.0)))
    if variant.law == "none":
        model = ml.with_noise(model, 0 * model.data.quantiles)
    return model


def errors(
    part: ml.Part, model: models.FastFactorization, position: Any, key: Any, at: np.ndarray
) -> np.ndarray:
    predict = ml.predictor(part, 0.0)
    return np.array(
        [ml.rmse(predict(v.position), part) for v in ml.watch(model, position, key, at)]
    )


def positive_start(part: ml.Part, seed: int, scale: float, mean: float) -> Any:
    """Factors about a positive mean: predictions then begin at rank · mean²."""
    return {k: v + np.float32(mean) for k, v in ml.start(part, seed, scale).items()}


def mean_for(part: ml.Part, error: float) -> float:
    """The mean of factors at which predictions begin with that error."""
    spread = float(part.test.values.var())
    return math.sqrt(max(part.center - math.sqrt(max(error**2 - spread, 0.0)), 0.0) / ml.RANK)


def published_curve(name: str, alpha: float, at: np.ndarray) -> np.ndarray:
    """The published error at these iterations; for synthetic ratings a curve of that kind.

    One curve of ML-10M begins late: before that it is not a number.
    """
    if name not in FIGURES:
        return 3.0 - np.log(at) / np.log(at[-1])
    table = published(FIGURES[name]).where(alpha=alpha)
    first = table["y"][0] if table["x"][0] <= AT_ONCE else np.nan
    return np.interp(at, table["x"], table["y"], left=first)


def first_error(name: str, alpha: float, wanted: np.ndarray) -> float:
    """Where a curve begins; of one that begins late, where a line in log n through it would."""
    if np.isfinite(wanted[0]):
        return float(wanted[0])
    table = published(FIGURES[name]).where(alpha=alpha)
    _, height = np.polyfit(np.log(table["x"][:5]), table["y"][:5], 1)
    return float(height)


def fit(config: Convergence, cell: Cell, key: Any) -> CellResult:
    """The start and a that come nearest to the published curve; and SGLD from the same start."""
    part, alpha, at = ml.part(cell["set"], is_tuning=False), cell["alpha"], marks(cell["length"])
    wanted = published_curve(cell["set"], alpha, at)
    mean = mean_for(part, wanted[0])
    best: tuple[float, float, float, np.ndarray] | None = None
    for a in config.fit_a:
        model = sampler(part, VARIANTS[0], alpha, a)
        for scale in config.fit_scales:
            found = errors(part, model, positive_start(part, 0, scale, mean), key, at)
            distance = float(np.abs(found - wanted).mean())
            if best is None or distance < best[0]:
                best = distance, a, scale, found
    assert best is not None
    distance, a, scale, curve = best
    gaussian = sampler(part, BY_ID["sgld"], alpha, a)
    beside = errors(part, gaussian, positive_start(part, 0, scale, mean), key, at)
    return {
        "steps": at, "published": wanted, "measured": curve, "sgld": beside, "a": a,
        "scale": scale, "mean": mean, "distance": distance, "source": part.source,
    }  # fmt: skip


def fit_large(config: Convergence, cell: Cell, key: Any) -> CellResult:
    """Each published curve of a larger set, and the run that comes near it."""
    part, at = ml.part(cell["set"], is_tuning=False), marks(cell["length"])
    runs = [
        _near(config, part, cell["set"], alpha, at, key) for alpha in config.alphas(cell["set"])
    ]
    return {"steps": at, "scale": START_SPREAD, "source": part.source, **gathered(runs)}


def _near(
    config: Convergence, part: ml.Part, name: str, alpha: float, at: np.ndarray, key: Any
) -> dict[str, Any]:
    """With the a that comes nearest to the beginning of the curve."""
    wanted = published_curve(name, alpha, at)
    mean = mean_for(part, first_error(name, alpha, wanted))
    position = positive_start(part, 0, START_SPREAD, mean)

    def run(a: float, places: np.ndarray) -> np.ndarray:
        return errors(part, sampler(part, VARIANTS[0], alpha, a), position, key, places)

    early = at[at <= max(2, EARLY * at[-1])]
    tried = [_distance(run(a, early), wanted) for a in config.large_a]
    a = config.large_a[int(np.argmin(tried))]
    found = run(a, at)
    distance = _distance(found, wanted)
    return {"alpha": alpha, "mean": mean, "a": a, "distance": distance, "measured": found}


def _distance(found: np.ndarray, wanted: np.ndarray) -> float:
    """Mean over the first marks, as many as were looked at, where something was published."""
    return float(np.nanmean(np.abs(found - wanted[: len(found)])))


def ablate(config: Convergence, cell: Cell, key: Any) -> CellResult:
    """All variants from one start with one a: the SGLD curve's, where α plays no part."""
    part, at = ml.part(cell["set"], is_tuning=False), marks(cell["length"])
    mean = mean_for(part, published_curve(cell["set"], 2.0, at)[0])
    a = config.fit_a[len(config.fit_a) // 2]
    found = {"steps": at, "a": a, "mean": mean}
    for variant in variants_of(cell["alpha"]):
        model = sampler(part, variant, cell["alpha"], a)
        runs = [
            errors(part, model, positive_start(part, seed, config.fit_scales[0], mean), k, at)
            for seed, k in enumerate(jax.random.split(key, config.num_seeds))
        ]
        found[variant.id] = np.stack(runs)
    return found


def tune(config: Convergence, cell: Cell, key: Any) -> CellResult:
    """The a with the least error at the end on the validation split; then the test split."""
    variant, alpha, at = BY_ID[cell["variant"]], cell["alpha"], marks(cell["length"])
    key_tune, key_report = jax.random.split(key)
    scores = [
        _last_error(cell["set"], variant, alpha, a, cell["length"], key_tune)
        for a in config.tuned_a
    ]
    a = config.tuned_a[int(np.argmin(scores))]
    part = ml.part(cell["set"], is_tuning=False)
    model = sampler(part, variant, alpha, a)
    runs = [
        errors(part, model, ml.start(part, seed), k, at)
        for seed, k in enumerate(jax.random.split(key_report, config.num_seeds))
    ]
    return {
        "steps": at, "measured": np.stack(runs), "a": a, "tried": np.array(config.tuned_a),
        "validation": np.array(scores), "source": part.source,
    }  # fmt: skip


def _last_error(
    name: str, variant: Variant, alpha: float, a: float, length: int, key: Any
) -> float:
    part = ml.part(name, is_tuning=True)
    model = sampler(part, variant, alpha, a)
    position = ml.start(part, 0)
    return float(errors(part, model, position, key, np.array([length]))[-1])


def summarise(config: Convergence, results: Mapping[str, CellResult]) -> Tables:
    every = cells(config)
    tasks = ("fit", "large", "ablate", "tune")
    by_task = {does: [c for c in every if c["does"] == does] for does in tasks}
    fits = [_fit_row(cell, results[cell.id]) for cell in by_task["fit"]]
    for cell in by_task["large"]:
        fits += _large_rows(cell, results[cell.id])
    return {
        "fits": Table.stack(
            "The start and a nearest to each published curve: mean entry of the factors, their "
            "spread, a, and the mean distance of the curve; and, of the first set, that of SGLD "
            "from the same start with the step c_α η. On made, that is synthetic, ratings the "
            "distance tells how alike the curves are, and no more.",
            fits,
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


def _fit_row(cell: Cell, result: CellResult) -> dict[str, Any]:
    beside = abs(result["sgld"] - result["measured"]).mean()
    names = ("mean", "scale", "a", "distance")
    base = {"set": cell["set"], "source": str(result["source"]), "alpha": cell["alpha"]}
    return {**base, **{n: float(result[n]) for n in names}, "sgld_distance": beside}


def _large_rows(cell: Cell, result: CellResult) -> list[dict[str, Any]]:
    values = zip(
        *(result[name].tolist() for name in ("alpha", "mean", "a", "distance")), strict=True
    )
    return [
        {
            "set": cell["set"],
            "source": str(result["source"]),
            "alpha": alpha,
            "mean": mean,
            "scale": float(result["scale"]),
            "a": a,
            "distance": distance,
            "sgld_distance": math.nan,
        }
        for alpha, mean, a, distance in values
    ]


def _ablation(cell: Cell, result: CellResult) -> Iterator[dict[str, Any]]:
    for variant in variants_of(cell["alpha"]):
        last = result[variant.id][:, -1]
        yield {"alpha": cell["alpha"], "step": variant.name, **ml.over_seeds(last)}


def _tuned_row(cell: Cell, result: CellResult) -> dict[str, Any]:
    last = result["measured"][:, -1]
    return {
        "set": cell["set"],
        "source": str(result["source"]),
        "alpha": cell["alpha"],
        "step": BY_ID[cell["variant"]].name,
        "a": float(result["a"]),
        **ml.over_seeds(last),
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
    for cell in by_task["large"]:
        found = results[cell.id]
        for alpha, values in zip(found["alpha"].tolist(), found["measured"], strict=True):
            base = {"kind": "larger set", "set": cell["set"], "alpha": alpha, "step": "measured"}
            yield {**base, "n": found["steps"], "error": values.round(4)}
    for cell in by_task["ablate"]:
        for variant in variants_of(cell["alpha"]):
            yield part("common", cell, variant.name, results[cell.id][variant.id].mean(axis=0))
    for cell in by_task["tune"]:
        name = BY_ID[cell["variant"]].name
        yield part("tuned", cell, name, results[cell.id]["measured"].mean(axis=0))


def checks(config: Convergence, tables: Tables) -> list[Check]:
    rows = heavy(tables["ablation"].where(step=LEVY)).rows()
    found = [_check_gradient(row, tables) for row in rows]
    if ml.is_real(tables["tuned"]):
        real = tables["fits"].where(source=ml.REAL).rows()
        found = [_check_curve(config, row) for row in real] + found
    return found


def _check_curve(config: Convergence, row: dict[str, Any]) -> Check:
    where = "" if row["set"] == config.first else f" of {row['set']}"
    return Check.below(
        f"published curve{where}, mean distance, α = {row['alpha']:g}",
        row["distance"],
        CLOSE,
        source="paper",
        reason=f"each from its own start, with factors about {row['mean']:.2f}",
        explanation=NEEDS_A_START,
    )


def _check_gradient(row: dict[str, Any], tables: Tables) -> Check:
    """The larger gradient step alone against the whole of SG-FLA."""
    (beside,) = tables["ablation"].where(alpha=row["alpha"], step=GRADIENT).rows()
    return Check.near(
        f"error after the last step, SGLD with step c_α η, α = {row['alpha']:g}",
        beside["error"],
        row["error"],
        CLOSE,
        reason="from one start with one a: what SG-FLA gains is the larger gradient step",
        explanation="A long jump in one of the runs raises the error of SG-FLA itself.",
    )


def verdict(config: Convergence, tables: Tables, checks: Sequence[Check]) -> Verdict:
    words = f"{_of_parts(config, tables)} {_of_tuning(config, tables)}"
    if not ml.is_real(tables["tuned"]):
        return Verdict("measured here", f"On synthetic ratings. {words}")
    fitted = all(check.holds for check in checks if check.source == "paper")
    said = f"{_of_curves(config, tables)} {words}"
    if fitted:
        return Verdict("reproduced only as a transient", said)
    return Verdict("not reproduced", said)


def _of_curves(config: Convergence, tables: Tables) -> str:
    rows = tables["fits"].where(set=config.first).rows()
    means = ", ".join(f"{row['mean']:.2f}" for row in rows)
    alphas = ", ".join(f"{row['alpha']:g}" for row in rows)
    nearest, farthest = (f(row["distance"] for row in rows) for f in (min, max))
    return (
        f"The published curves come out to {nearest:.2f}–{farthest:.2f} stars, but only if each α "
        f"has a start of its own: factors about {means} for α = {alphas}. They differ from the "
        "first iteration on. Most of what looks like speed is this start, and the rest is the "
        "larger gradient step: SGLD with step c_α η from the same start follows our curves to "
        f"{max(row['sgld_distance'] for row in rows):.3f}.{_of_large(config, tables)}"
    )


def _of_large(config: Convergence, tables: Tables) -> str:
    """The other panels of the figure, and whose ratings ours are of."""
    said = ""
    for name in config.large:
        part = tables["fits"].where(set=name)
        worst = part["distance"].max()
        what = f"On {name}" if ml.is_real(part) else f"On synthetic ratings of the size of {name}"
        said += f" {what} curves from such starts are within {worst:.2f} of the published."
    return said


def _of_parts(config: Convergence, tables: Tables) -> str:
    alpha = min(tables["ablation"]["alpha"])
    table = tables["ablation"]
    plain = table.where(alpha=2.0, step=LEVY).rows()[0]["error"]
    rows = {row["step"]: row["error"] for row in table.where(alpha=alpha).rows()}
    parts = "; ".join(f"{name}: {error:.3f}" for name, error in rows.items())
    return (
        f"From one start with one a, SGLD ends at {plain:.3f}, and at α = {alpha:g} the parts of "
        f"the step give {parts}."
    )


def _of_tuning(config: Convergence, tables: Tables) -> str:
    table = tables["tuned"]
    exact, cut, still = (
        table.where(step=BY_ID[id].name).rows() for id in ("sgfla", "truncated", "sgd")
    )
    turned = exact[-1]["error"] > exact[0]["error"]
    why = " Exact jumps stay in the rows that they hit." if turned else ""
    return (
        f"With a tuned on a validation split the last draw's error is {_listed(exact)}; with jumps "
        f"of at most 50 {_listed(cut)}; and by SGD, with no noise, {_listed(still)}.{why}"
    )


def _listed(rows: list[dict[str, Any]]) -> str:
    return ", ".join(f"{row['error']:.3f} (α = {row['alpha']:g})" for row in rows)


def figures(config: Convergence, tables: Tables) -> dict[str, Figure]:
    figure = new_figure(13, 8.6)
    letters = ("A", *"BC"[: len(config.large)])
    width = 6 // len(letters)
    places = figure.subplot_mosaic([[one for one in letters for _ in range(width)], list("DDDEEE")])
    curves, is_real = tables["curves"], ml.is_real(tables["tuned"])
    _draw_fitted(places["A"], curves.where(kind="as published"), with_points=is_real)
    for letter, name in zip("BC", config.large, strict=False):
        part = curves.where(kind="larger set", set=name)
        _draw_large(places[letter], part, name, is_real=ml.is_real(tables["fits"].where(set=name)))
    _draw_common(places["D"], curves.where(kind="common"))
    _draw_tuned(places["E"], curves.where(kind="tuned"), config.first)
    for axes in places.values():
        axes.set(xlabel="iterations")
    for letter in "AD":
        places[letter].set_ylabel("RMSE of the current draw")
    return {"movielens-convergence": figure}


def _draw_fitted(axes: Axes, table: Table, *, with_points: bool) -> None:
    for alpha, part in groups(table, "alpha"):
        colour = alpha_colour(alpha)
        ours, theirs, beside = (part.where(step=s) for s in ("measured", "published", "sgld"))
        axes.plot(ours["n"], ours["error"], color=colour, label=f"α = {alpha:g}")
        axes.plot(beside["n"], beside["error"], color=colour, ls=DOTTED, lw=1.3)
        if with_points:
            axes.plot(theirs["n"][::2], theirs["error"][::2], **_points(colour))
    axes.set_title("MovieLens 1M" if with_points else "Synthetic ratings")
    note(axes, "circles: published; dotted: SGLD" if with_points else "dotted: SGLD")
    axes.legend(fontsize=9)


def _points(colour: Any) -> Any:
    """Of the paper."""
    return {"marker": "o", "ms": 4, "mfc": "white", "mec": colour, "ls": "none"}


def _draw_large(axes: Axes, table: Table, name: str, *, is_real: bool) -> None:
    """All published points behind our curves."""
    for alpha, part in groups(table, "alpha"):
        colour = alpha_colour(alpha)
        if name in FIGURES:
            points = published(FIGURES[name]).where(alpha=alpha)
            axes.plot(points["x"], points["y"], **_points(colour), alpha=0.6)
        axes.plot(part["n"], part["error"], color=colour, label=f"α = {alpha:g}")
    axes.set_title(TITLES.get(name, "Synthetic ratings"))
    note(axes, f"circles: published; lines: {'true' if is_real else 'synthetic'}")
    axes.legend(fontsize=9)


def _draw_common(axes: Axes, table: Table) -> None:
    alpha = table["alpha"].min()
    plain = table.where(alpha=table["alpha"].max(), step=VARIANTS[0].name)
    axes.plot(plain["n"], plain["error"], color=GREY, label="SGLD, step η")
    widths = np.linspace(4.5, 1.2, len(VARIANTS))  # some coincide: the later ones are narrower
    for variant, colour, dash, width in zip(VARIANTS, COLOURS, DASHES, widths, strict=True):
        part = table.where(alpha=alpha, step=variant.name)
        look: Any = {"color": colour, "ls": dash, "lw": width}
        axes.plot(part["n"], part["error"], label=variant.name, **look)
    axes.set_title("One start, one a")
    note(axes, f"α = {alpha:g}")
    axes.legend(fontsize=9)


def _draw_tuned(axes: Axes, table: Table, name: str) -> None:
    for alpha, part in groups(table, "alpha"):
        colour, exact = alpha_colour(alpha), part.where(step=VARIANTS[0].name)
        axes.plot(exact["n"], exact["error"], color=colour, label=f"α = {alpha:g}")
        if alpha < 2:
            cut = part.where(step=VARIANTS[1].name)
            axes.plot(cut["n"], cut["error"], color=colour, ls=DASHED)
    axes.set(title="a tuned on a validation split", yscale="log")
    _write_plainly(axes)
    note(axes, f"{name}; dashed: jumps ≤ 50")
    axes.legend(fontsize=9)


def _write_plainly(axes: Axes) -> None:
    """Errors as numbers, not as powers of ten, also between these."""
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}")


EXPERIMENT = Experiment(
    name="movielens-convergence",
    title="How fast SG-FLA learns to predict ratings",
    paper_item="Figure 5",
    question="Does the error fall faster the smaller α is, and what is it due to?",
    profiles={
        "quick": Convergence(
            first="small",
            length=60,
            large=("small",),
            large_lengths=(30,),
            fit_a=(1e-5,),
            fit_scales=(0.1,),
            tuned_a=(1e-5, 1e-4),
            large_a=(1e-5, 1e-4),
            num_seeds=2,
        ),
        "paper": Convergence(
            first="ml-1m",
            length=400,
            large=("ml-10m", "ml-20m"),
            large_lengths=(500, 1490),
            fit_a=tuple(round(10 ** (k / 4), 15) for k in range(-40, -29)),
            fit_scales=(0.1, 0.4, 0.8),
            tuned_a=(1e-8, 1e-7, 3e-7, 1e-6, 3e-6, 1e-5, 3e-5),
            large_a=(1e-10, 3e-10, 1e-9, 3e-9),
            num_seeds=3,
        ),
    },
    captions={
        "movielens-convergence": "Error against iterations. Top: published points and our curves "
        "on each data set, each α from a start of its own; where a data set is not there, on "
        "synthetic ratings of its size. Bottom: on the first, all from one start with one a, for "
        "the parts of the step; and with a tuned on a validation split."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
    dtype="float32",
    needs=needs,
)
