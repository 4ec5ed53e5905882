r"""Figure 5: the error of SG-FLA's predictions of ratings against the iterations, for several α.

.. math:: x' = x + η_n\, c_α\, \widehat{∇\log φ}(x; Ω) + η_n^{1/α}\, ξ, \qquad
   η_n = (a/n)^{0.51}, \qquad |Ω| = N/10,

with the error of the current draw, as in the figure.  Four questions.  Are the published curves of
all α one curve, read at the pace c_α (see `_one_curve`)?  Which start and a give them: both are
fitted to SGLD's curve alone, and the others foretold.  What is left of "faster for smaller α", and
to which part of the step is it due?  And how far does each α come if a is tuned on a validation
split?  The first two are asked of all three data sets, the others of the first.

With exact noise and Euler's step every run with α < 2 diverges sooner or later (see
`movielens_stability`): here the drift's step of a row is bounded by its curvature.

References: [simsekli2017], Figure 5.  Departures: the paper tells neither the start nor a, nor of
iterations before the first that is plotted.  Where the larger data sets are not in the cache,
synthetic ratings of the same size stand in for them, and are marked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import optimize

from levymc import models, schedules, stable
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
from ._one_curve import FIGURES, POWER, distances, hidden_iterations, pace, times
from ._shared import DASHED, DOTTED, groups, heavy, published

TITLES = {"ml-1m": "MovieLens 1M", "ml-10m": "MovieLens 10M", "ml-20m": "MovieLens 20M"}
SHAPES = {"ml-1m": "o", "ml-10m": "s", "ml-20m": "^"}
NUM_MARKS = 50
HIDDEN = tuple(range(0, 61, 5))  # iterations before the first that is plotted
FIRST_STEPS = (0.7, 0.3, 0.3)  # of the search: of log a, log mean and log spread
TUNING_KEYS = 3  # with exact noise one run may be hit by a long jump


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
CLOSE, SAME = 0.1, 0.05  # stars: of a simulated curve, and of one that is read off
JUMPS = "A long jump stays in the rows that it hits: one run with exact noise may end far above."
COLOURS = (VERMILLION, ORANGE, PURPLE, BLUE, GREEN)
DASHES = ("-", "-", DASHED, DOTTED, "-.")


def variants_of(alpha: float) -> tuple[Variant, ...]:
    """Those that differ at this α: at 2 all are SGLD, but for that without noise."""
    return VARIANTS if alpha < 2 else (VARIANTS[0], BY_ID["sgd"])


@dataclass(frozen=True)
class Convergence:
    """Sizes.

    first, length: the data set that is looked at most closely, and iterations on it; "small" is
        synthetic.
    large, large_lengths: those of which the published curves alone are looked at.
    guesses: for each set, where the search for a start and a begins.
    common: the start and a from which all parts of the step are run.
    most_trials, fitted: runs of that search, and the share of the iterations that each makes.
    tuned_a: values of a that are tried on the validation split.
    """

    first: str
    length: int
    large: tuple[str, ...]
    large_lengths: tuple[int, ...]
    guesses: tuple[tuple[float, float, float], ...]
    common: tuple[float, float, float]
    most_trials: int
    tuned_a: tuple[float, ...]
    num_seeds: int
    fitted: float = 1.0
    small_alphas: tuple[float, ...] = (2.0, 1.4)

    @property
    def sets(self) -> tuple[tuple[str, int, tuple[float, float, float]], ...]:
        """Each data set with its iterations and guess, the first of them first."""
        names, lengths = (self.first, *self.large), (self.length, *self.large_lengths)
        return tuple(zip(names, lengths, self.guesses, strict=True))

    def alphas(self, name: str) -> tuple[float, ...]:
        """Those of the figure."""
        if name not in FIGURES:
            return self.small_alphas
        return tuple(sorted(set(published(FIGURES[name])["alpha"].tolist()), reverse=True))


def needs(config: Convergence) -> None:
    ml.check_there(config.first)


class Start(NamedTuple):
    """a of the steps; mean and spread of the factors."""

    a: float
    mean: float
    spread: float


def sources(config: Convergence) -> dict[str, str]:
    return ml.sources(config.first, *config.large)


def cells(config: Convergence) -> list[Cell]:
    """The larger sets first, as they take longest."""
    found = [
        Cell(
            f"fit-{number}-{name}",
            {"set": name, "length": length, "guess": list(guess), "does": "fit"},
        )
        for number, (name, length, guess) in reversed(list(enumerate(config.sets)))
    ]
    name = config.first
    for alpha in config.alphas(name):
        base = {"set": name, "length": config.length, "alpha": alpha}
        found.append(Cell(f"ablate-{name}-alpha={alpha:g}", {**base, "does": "ablate"}))
        for variant in variants_of(alpha):
            id = f"tune-{name}-{variant.id}-alpha={alpha:g}"
            found.append(Cell(id, {**base, "does": "tune", "variant": variant.id}))
    return found


def run_cell(config: Convergence, cell: Cell, key: Any) -> CellResult:
    does = {"fit": fit, "ablate": ablate, "tune": tune}
    return does[cell["does"]](config, cell, key)


def marks(length: int) -> np.ndarray:
    """Iterations at which the error is measured: dense at first."""
    spaced = np.geomspace(1, length, NUM_MARKS // 2), np.linspace(1, length, NUM_MARKS // 2)
    return np.unique(np.round(np.concatenate(spaced)).astype(int))


def sampler(part: ml.Part, variant: Variant, alpha: float, a: float) -> models.FastFactorization:
    """The variant at that α; the drift's step is bounded by the row's curvature."""
    scale = pace(alpha) if variant.alpha_two else 1.0
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


def started(part: ml.Part, seed: int, how: Start) -> Any:
    """Factors about a positive mean: predictions then begin about rank · mean²."""
    factors = ml.start(part, seed, how.spread)
    return {name: leaf + np.float32(how.mean) for name, leaf in factors.items()}


def published_curve(name: str, at: np.ndarray) -> np.ndarray:
    """SGLD's published error at these iterations; for synthetic ratings a curve of that kind."""
    if name not in FIGURES:
        return 3.0 - np.log(at) / np.log(at[-1])
    table = published(FIGURES[name]).where(alpha=2.0)
    return np.interp(at, table["x"], table["y"])


def fit(config: Convergence, cell: Cell, key: Any) -> CellResult:
    """The start, a and hidden iterations nearest to SGLD's published curve; all α from there."""
    part, at = ml.part(cell["set"], is_tuning=False), marks(cell["length"])
    wanted = published_curve(cell["set"], at)

    def run(variant: Variant, alpha: float, how: Start, places: np.ndarray) -> np.ndarray:
        model = sampler(part, variant, alpha, how.a)
        return errors(part, model, started(part, 0, how), key, places)

    early = at[at <= max(2, config.fitted * at[-1])]
    looked = np.unique(np.add.outer(HIDDEN, early))

    def distances_of(logs: np.ndarray) -> np.ndarray:
        """For each number of hidden iterations; all of them are seen in one run."""
        found = run(VARIANTS[0], 2.0, Start(*np.exp(logs).tolist()), looked)
        shifted = found[np.searchsorted(looked, np.add.outer(HIDDEN, early))]
        return np.abs(shifted - wanted[: len(early)]).mean(axis=1)

    best = _searched(lambda x: distances_of(x).min(), np.log(cell["guess"]), config.most_trials)
    hidden, how = HIDDEN[int(np.argmin(distances_of(best)))], Start(*np.exp(best).tolist())
    alphas = config.alphas(cell["set"])
    runs = {
        name: np.stack([run(BY_ID[id], alpha, how, at + hidden) for alpha in alphas])
        for name, id in (("measured", "sgfla"), ("truncated", "truncated"), ("sgld", "sgld"))
    }
    return {
        "steps": at, "alpha": np.array(alphas), "hidden": hidden, "source": part.source,
        **how._asdict(), **runs,
    }  # fmt: skip


def _searched(distance: Any, first: np.ndarray, most: int) -> np.ndarray:
    """By Nelder and Mead's simplex, from that point and one step along each axis."""
    simplex = np.concatenate([first[None], first + np.diag(FIRST_STEPS)])
    how = {"maxfev": most, "initial_simplex": simplex, "xatol": 0.01, "fatol": 1e-3}
    return optimize.minimize(distance, first, method="Nelder-Mead", options=how).x


def ablate(config: Convergence, cell: Cell, key: Any) -> CellResult:
    """All variants from one start with one a, where α plays no part."""
    part, at, how = ml.part(cell["set"], is_tuning=False), marks(cell["length"]), config.common
    begin = Start(*how)
    found: dict[str, Any] = {"steps": at, **begin._asdict()}
    for variant in variants_of(cell["alpha"]):
        model = sampler(part, variant, cell["alpha"], begin.a)
        runs = [
            errors(part, model, started(part, seed, begin), k, at)
            for seed, k in enumerate(jax.random.split(key, config.num_seeds))
        ]
        found[variant.id] = np.stack(runs)
    return found


def tune(config: Convergence, cell: Cell, key: Any) -> CellResult:
    """The a with the least error at the end on the validation split; then the test split."""
    variant, alpha, at = BY_ID[cell["variant"]], cell["alpha"], marks(cell["length"])
    key_tune, key_report = jax.random.split(key)
    scores = [
        np.median(
            [
                _last_error(cell["set"], variant, alpha, a, cell["length"], k)
                for k in jax.random.split(key_tune, TUNING_KEYS)
            ]
        )
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
    tasks = ("fit", "ablate", "tune")
    by_task = {does: [c for c in every if c["does"] == does] for does in tasks}
    by_task["fit"].reverse()  # the first set first
    return {
        "paces": distances(hidden_iterations()),
        "fits": Table.stack(
            "One start and a for all α, chosen on SGLD's published curve alone: a, mean and spread "
            "of the factors, iterations that are not shown; and the mean distance from the "
            "published curve of SG-FLA with exact noise, with jumps of at most 50, and of SGLD "
            "with the step c_α η. On synthetic ratings the distance tells how alike the curves "
            "are, and no more.",
            (row for cell in by_task["fit"] for row in _fit_rows(cell, results[cell.id])),
        ),
        "ablation": Table.stack(
            "From one start with one a: error of the last draw for each part of the step; median, "
            "least and largest over seeds.",
            (row for cell in by_task["ablate"] for row in _ablation(cell, results[cell.id])),
        ),
        "tuned": Table.stack(
            "With a tuned on the validation split: error of the last draw on the test split; "
            "median, least and largest over seeds.",
            (_tuned_row(cell, results[cell.id]) for cell in by_task["tune"]),
        ),
        "curves": Table.stack(
            "All curves: fitted to SGLD's and foretold, from one start (common), and tuned; "
            "medians over seeds.",
            _curves(by_task, results),
        ),
    }


def _fit_rows(cell: Cell, result: CellResult) -> Iterator[dict[str, Any]]:
    for number, alpha in enumerate(result["alpha"].tolist()):
        yield {
            "set": cell["set"],
            "source": str(result["source"]),
            "alpha": alpha,
            **{name: float(result[name]) for name in Start._fields},
            "hidden": int(result["hidden"]),
            **{
                f"{name}_distance": _distance(cell["set"], alpha, result["steps"], values[number])
                for name, values in ((n, result[n]) for n in ("measured", "truncated", "sgld"))
            },
        }


def _distance(name: str, alpha: float, at: np.ndarray, found: np.ndarray) -> float:
    """Mean over the published points, from the first that there is."""
    if name not in FIGURES:
        return float(np.abs(found - published_curve(name, at)).mean())
    points = published(FIGURES[name]).where(alpha=alpha)
    return float(np.abs(np.interp(points["x"], at, found) - points["y"]).mean())


def _ablation(cell: Cell, result: CellResult) -> Iterator[dict[str, Any]]:
    for variant in variants_of(cell["alpha"]):
        last = result[variant.id][:, -1]
        yield {"alpha": cell["alpha"], "step": variant.name, **over_seeds(last)}


def _tuned_row(cell: Cell, result: CellResult) -> dict[str, Any]:
    last = result["measured"][:, -1]
    return {
        "set": cell["set"],
        "source": str(result["source"]),
        "alpha": cell["alpha"],
        "step": BY_ID[cell["variant"]].name,
        "a": float(result["a"]),
        **over_seeds(last),
        "seeds": len(last),
    }


def _curves(
    by_task: Mapping[str, Sequence[Cell]], results: Mapping[str, CellResult]
) -> Iterator[dict[str, Any]]:
    def part(kind: str, cell: Cell, step: str, values: Any) -> dict[str, Any]:
        base = {"kind": kind, "set": cell["set"], "alpha": cell["alpha"], "step": step}
        return {**base, "n": results[cell.id]["steps"], "error": values.round(4)}

    for cell in by_task["fit"]:
        found = results[cell.id]
        for number, alpha in enumerate(found["alpha"].tolist()):
            base = {"kind": "as published", "set": cell["set"], "alpha": alpha}
            for step in ("measured", "truncated", "sgld"):
                values = found[step][number].round(4)
                yield {**base, "step": step, "n": found["steps"], "error": values}
    for cell in by_task["ablate"]:
        for variant in variants_of(cell["alpha"]):
            values = np.median(results[cell.id][variant.id], axis=0)
            yield part("common", cell, variant.name, values)
    for cell in by_task["tune"]:
        name = BY_ID[cell["variant"]].name
        yield part("tuned", cell, name, np.median(results[cell.id]["measured"], axis=0))


def over_seeds(errors: np.ndarray) -> dict[str, float]:
    """Median, least and largest of the last errors of several runs, one of which a jump may hit."""
    return {"error": np.median(errors), "least": errors.min(), "largest": errors.max()}


def checks(config: Convergence, tables: Tables) -> list[Check]:
    found = [
        _check_gradient(row, tables) for row in heavy(tables["ablation"]).where(step=LEVY).rows()
    ]
    if ml.is_real(tables["tuned"]):
        real = tables["fits"].where(source=ml.REAL).rows()
        found = [_check_curve(config, row) for row in real] + found
    return [_check_pace(row) for row in tables["paces"].rows()] + found


def _check_pace(row: dict[str, Any]) -> Check:
    return Check.below(
        f"published curve of {row['set']}, α = {row['alpha']:g}, read off SGLD's at c_α times its "
        "pace: mean distance",
        row["distance"],
        SAME,
        source="paper",
        reason=f"at most {row['largest']:.2f} at a point, with one number for all curves: "
        f"{row['hidden']} iterations that are not shown",
    )


def _check_curve(config: Convergence, row: dict[str, Any]) -> Check:
    where = "" if row["set"] == config.first else f" of {row['set']}"
    how = "chosen on this curve" if row["alpha"] == 2 else "chosen on SGLD's curve alone"
    return Check.below(
        f"published curve{where}, mean distance of ours, α = {row['alpha']:g}",
        row["measured_distance"],
        CLOSE,
        source="paper",
        reason=f"a and the start were {how}; with jumps of at most {ml.BOUND:g} the distance is "
        f"{row['truncated_distance']:.3f}",
        explanation=JUMPS,
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
        explanation=JUMPS,
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
    paces, rows = tables["paces"], heavy(tables["fits"].where(set=config.first)).rows()
    ours, cut, sgld = (
        ", ".join(f"{row[f'{name}_distance']:.3f}" for row in rows)
        for name in ("measured", "truncated", "sgld")
    )
    alphas = ", ".join(f"{row['alpha']:g}" for row in rows)
    return (
        "The published curves are one curve: SGLD's, read at c_α times its pace, gives those of "
        f"all other α to {paces['distance'].min():.3f}–{paces['distance'].max():.3f} stars, if "
        f"{paces['hidden'][0]} iterations came before the first that is shown. From one start and "
        f"a, chosen on SGLD's curve alone, ours of α = {alphas} come to {ours}; with jumps of at "
        f"most {ml.BOUND:g} to {cut}; and SGLD with the step c_α η to {sgld}. Their speed is that "
        f"of the larger gradient step.{_of_large(config, tables)}"
    )


def _of_large(config: Convergence, tables: Tables) -> str:
    """The other panels of the figure, and whose ratings ours are of."""
    said = ""
    for name in config.large:
        part = tables["fits"].where(set=name)
        worst = heavy(part)["measured_distance"].max()
        if ml.is_real(part):
            said += f" On {name} such curves are within {worst:.2f} of the published."
        else:
            said += (
                f" On synthetic ratings of the size of {name} they are within {worst:.2f}, which "
                "says that such curves are possible, and nothing of the true ratings."
            )
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
    letters = "ABC"[: len(config.sets)]
    top = "".join(letters[place * len(letters) // 6] for place in range(6))
    places = figure.subplot_mosaic(f"{top};DDEEFF")
    curves, fits = tables["curves"], tables["fits"]
    for number, (letter, (name, *_)) in enumerate(zip(letters, config.sets, strict=True)):
        source = fits.where(set=name)
        part = curves.where(kind="as published", set=name)
        _draw_fitted(places[letter], part, name, is_real=ml.is_real(source), has_legend=not number)
    _draw_paces(places["D"], tables["paces"])
    _draw_common(places["E"], curves.where(kind="common"))
    _draw_tuned(places["F"], curves.where(kind="tuned"), config.first)
    for letter in (*letters, "E", "F"):
        places[letter].set_xlabel("iterations")
    for letter in "AD":
        places[letter].set_ylabel("RMSE of the current draw")
    return {"movielens-convergence": figure}


def _draw_fitted(axes: Axes, table: Table, name: str, *, is_real: bool, has_legend: bool) -> None:
    """All published points behind our curves."""
    for alpha, part in groups(table, "alpha"):
        colour, ours, beside = alpha_colour(alpha), *(part.where(step=s) for s in LINES)
        if name in FIGURES:
            points = published(FIGURES[name]).where(alpha=alpha)
            axes.plot(points["x"], points["y"], **_points(colour, "o"))
        axes.plot(ours["n"], ours["error"], color=colour, label=f"α = {alpha:g}")
        axes.plot(beside["n"], beside["error"], color=colour, ls=DOTTED, lw=1.3)
    title = TITLES.get(name, "Synthetic ratings")
    axes.set_title(title if is_real or name not in TITLES else f"{title}: synthetic ratings")
    note(axes, "dotted: SGLD, step c_α η" if has_legend else "")
    axes.legend(fontsize=9, title="circles: published", title_fontsize=8)


LINES = ("measured", "sgld")


def _points(colour: Any, shape: str) -> Any:
    """Of the paper."""
    return {
        "marker": shape, "ms": 4, "mfc": "white", "mec": colour, "ls": "none", "zorder": 1,
    }  # fmt: skip


def _draw_paces(axes: Axes, table: Table) -> None:
    """All published points against the time that their drift has gone through."""
    hidden = int(table["hidden"][0])
    for name, figure in FIGURES.items():
        for alpha, points in groups(published(figure), "alpha"):
            at = times(points["x"], alpha, hidden)
            axes.plot(at, points["y"], **_points(alpha_colour(alpha), SHAPES[name]))
        axes.plot([], [], **_points(GREY, SHAPES[name]), label=TITLES[name])
    axes.set(title="Published: one curve a set", xlabel=f"c_α Σ i^−0.51, from i = {hidden + 1} on")
    note(axes, "colours: α")
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
    axes.set(title="a tuned for each", yscale="log")
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
            large=(),
            large_lengths=(),
            guesses=((1e-5, 0.3, 0.1),),
            common=(1e-5, 0.3, 0.1),
            most_trials=3,
            tuned_a=(1e-5, 1e-4),
            num_seeds=2,
        ),
        "paper": Convergence(
            first="ml-1m",
            length=400,
            large=("ml-10m", "ml-20m"),
            large_lengths=(500, 1490),
            guesses=((8e-9, 0.12, 0.4), (3e-10, 0.2, 0.4), (6e-11, 0.15, 0.4)),
            common=(8e-9, 0.12, 0.4),
            most_trials=60,
            fitted=0.2,
            tuned_a=(1e-8, 1e-7, 3e-7, 1e-6, 3e-6, 1e-5, 3e-5),
            num_seeds=5,
        ),
    },
    captions={
        "movielens-convergence": "Error against iterations. Top: published points and our curves "
        "on each data set, all α from one start with one a, which were chosen on SGLD's curve "
        "alone; where a data set is not there, on synthetic ratings of its size. Bottom: all "
        "published points against the time that the drift has gone through; on the first set all "
        "from one start with one a, for the parts of the step; and with a tuned on a validation "
        "split (medians over seeds)."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
    dtype="float32",
    needs=needs,
    sources=sources,
)
