r"""The supplement's note on SG-FLA: its training likelihood, and how it takes small minibatches.

.. math:: x' = x + η\, c_α\, \widehat{∇\log φ}(x; Ω) + η^{1/α}\, ξ, \qquad |Ω| = n,

on ratings and on the belief network, with everything fixed but n: the smaller n, the larger the
variance of the gradient.  "We did not observe that SG-FLA is able to find a better mode in a
systematic way.  However, we did observe that SG-FLA is more robust to the size of the minibatches
when compared to SGLD."  What each α loses from the largest n to the smallest says which it is.

On ratings all α and sizes have the steps (a/k)^0.51 at iteration k with one a, as one with smaller
steps would lose less by that alone; beside it, a is chosen on a validation split for each α and
size, and all that was tried is reported.  The number of iterations is the same for all sizes, as
"everything fixed but n" says: enough that the smallest minibatches, which see each rating about
once, learn.  For equally many ratings the largest would make a hundredth of the iterations.

The drift's step of a row is bounded by its curvature, without which exact jumps diverge.  The bound
acts exactly where n is small, as the gradient of a rating counts N/n times, 18,000 at n = 50: it
takes away part of what is tested, for every α.

Whether α differ is told by paired seeds whose error is pooled over α, with 5 % false alarms in all
comparisons of losses, and 5 % in all of modes; see ``_paired``.

References: [simsekli2017], the supplement's last paragraph, which has no numbers.  Departures: it
names neither sizes, steps nor models; the network learns from fewer images than in Figure 6.  Its
hidden units are kept between visits, of which an image has few where minibatches are small: with 50
of 10,000 images and 500 steps two or three, so that they begin nearly cold.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.markers import CARETDOWN

from levymc import schedules
from levymc_lab import data
from levymc_lab.framework import Cell, CellResult, Check, Experiment, Table, Tables, Verdict
from levymc_lab.framework.style import GREY, new_figure, note

from . import _movielens as ml
from . import sbn_stepsize as sbn
from ._paired import RATE, spread
from ._shared import gathered, groups, legend_below, plain_ticks, spread_colour

POWER = 0.51
TRAINED = 100_000  # ratings whose training likelihood is looked at
RATINGS, DIGITS = "ratings", "pictures"
FIXED, OWN = "the same for all", "of its own"
UNITS = {RATINGS: "nats a rating", DIGITS: "nats an image"}
SETTINGS = ((RATINGS, FIXED), (RATINGS, OWN), (DIGITS, FIXED))
NO_NUMBERS = (
    "The supplement gives no number, size, step or model. Here jumps do not make up for the "
    "variance of the gradient: they come on top of it."
)
ASIDE = 1.35  # of runs with steps of their own, on the axis of sizes
EDGE = 3.0  # interquartile ranges below the lowest quarter, from where points are drawn as arrows


@dataclass(frozen=True)
class Sizes:
    """Sizes.

    set, source: of ratings and of pictures, as the other experiments name them.
    sizes: of minibatches.
    a: of the steps on ratings that are compared, with which every size learns on the validation
        split; choices: of those that are chosen.
    rating_steps, picture_steps: iterations, the same for every size.
    num_seeds: of runs.
    step: constant η of the network, whose gradient is of `num_train` images.
    num_judged: images to learn from and test images whose likelihood is estimated.
    """

    set: str
    source: str
    sizes: tuple[int, ...]
    alphas: tuple[float, ...]
    choices: tuple[float, ...]
    rating_steps: int
    picture_steps: int
    num_seeds: int
    num_train: int
    num_judged: int
    num_hidden: int
    num_temperatures: int
    step: float = 1e-3
    a: float = 3e-8

    def network(self, size: int) -> sbn.StepSizes:
        """The network's experiment with minibatches of that size."""
        return sbn.StepSizes(
            source=self.source,
            num_train=self.num_train,
            num_test=self.num_judged,
            fewer_test=self.num_judged,
            num_hidden=self.num_hidden,
            num_iterations=self.picture_steps,
            short_iterations=1,
            num_seeds=self.num_seeds,
            num_temperatures=self.num_temperatures,
            batch_size=size,
        )


def needs(config: Sizes) -> None:
    ml.check_there(config.set)
    sbn.needs(config.network(config.sizes[0]))


def cells(config: Sizes) -> list[Cell]:
    """The largest minibatches of the network first, as they take longest."""
    pictures = [
        Cell(
            f"{DIGITS}-size={size}-alpha={alpha:g}-seed={seed}",
            {"of": DIGITS, "size": size, "alpha": alpha, "seed": seed},
            stream=f"{DIGITS}-seed={seed}",
        )
        for size in sorted(config.sizes, reverse=True)
        for seed in range(config.num_seeds)
        for alpha in config.alphas
    ]
    ratings = [
        Cell(f"{RATINGS}-alpha={alpha:g}", {"of": RATINGS, "alpha": alpha}, stream=RATINGS)
        for alpha in config.alphas
    ]
    return pictures + ratings


def run_cell(config: Sizes, cell: Cell, key: Any) -> CellResult:
    return {RATINGS: rate, DIGITS: depict}[cell["of"]](config, cell, key)


def depict(config: Sizes, cell: Cell, key: Any) -> CellResult:
    """A run of the network, and the likelihood of images that it learnt from and of others."""
    setup = config.network(cell["size"])
    model = sbn.network(config.num_hidden, setup.sweeps)
    key_chain, key_judge = jax.random.split(key)
    given = {"kind": "warm", "alpha": cell["alpha"], "step": config.step, "seed": 0}
    run = sbn.chain(setup, {**given, "length": config.picture_steps}, model, key_chain)
    position = jax.tree.map(lambda leaf: jnp.asarray(leaf[0, -1]), run.positions)
    images = sbn.split(setup)
    known = setup, model, key_judge, position
    found = {
        name: sbn.likelihood(*known, part[: config.num_judged], config.num_temperatures).mean
        for name, part in (("train", images.train), ("test", images.test))
    }
    divergences = int(run.observed["divergences"][0])
    return {**found, "divergences": divergences, "largest": _largest(position)}


def _largest(position: Any) -> float:
    return max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(position))


def rate(config: Sizes, cell: Cell, key: Any) -> CellResult:
    """Choose a for each size on the validation split; run each with its own, and with the one."""
    key_tune, key_report = jax.random.split(key)
    tuning, part = (ml.part(config.set, is_tuning=is_tuning) for is_tuning in (True, False))
    tried = [
        {"size": size, "a": a, **_last(config, tuning, cell["alpha"], size, a, 0, key_tune)}
        for size in config.sizes
        for a in config.choices
    ]
    chosen = best(config, np.array([row["test"] for row in tried]))
    seeds = list(enumerate(jax.random.split(key_report, config.num_seeds)))
    found = [
        {
            "size": size,
            "a": a,
            "is_own": is_own,
            "seed": seed,
            **_last(config, part, cell["alpha"], size, a, seed, k),
        }
        for is_own, values in ((False, [config.a] * len(chosen)), (True, chosen))
        for size, a in zip(config.sizes, values, strict=True)
        for seed, k in seeds
    ]
    tuned = {f"tuning_{name}": values for name, values in gathered(tried).items()}
    return {**gathered(found), **tuned, "source": part.source}


def best(config: Sizes, errors: np.ndarray) -> list[float]:
    """The a of each size with the least error; one that is not finite is never it."""
    finite = np.where(np.isfinite(errors), errors, np.inf).reshape(len(config.sizes), -1)
    return [config.choices[place] for place in np.argmin(finite, axis=1).tolist()]


def _last(
    config: Sizes, part: ml.Part, alpha: float, size: int, a: float, seed: int, key: Any
) -> dict[str, Any]:
    """Of the last draw: the mean log-likelihood of training ratings, its error on the test split.

    Steps that were refused look like robustness: how many there were is told.
    """
    model = ml.fast(
        part,
        batch_size=size,
        step_size=schedules.polynomial(a, POWER),
        alpha=alpha,
        center=part.center,
        curvature=True,
    )
    (visit,) = ml.watch(model, ml.start(part, seed), key, np.array([config.rating_steps]))
    learnt = part._replace(test=_some(part.train))
    train, test = (
        ml.rmse(ml.predictor(one, part.center)(visit.position), one) for one in (learnt, part)
    )
    return {
        "train": -(train**2) / 2 - np.log(2 * np.pi) / 2,
        "test": test,
        "divergences": visit.divergences,
        "largest": _largest(visit.position),
    }


def _some(ratings: data.Ratings) -> data.Ratings:
    """Of many ratings a part, always the same."""
    kept = np.random.default_rng(0).permutation(ratings.num_ratings)[:TRAINED]
    columns = {name: getattr(ratings, name)[kept] for name in ("users", "items", "codes")}
    return ratings._replace(**columns)


MEASURED = ("train", "test", "divergences", "largest")
CAPTIONS = {
    "runs": "Each run: the mean log-likelihood of what was learnt from, by the last draw, and on "
    "the test split the RMSE of ratings or the mean log-likelihood of images; steps that were "
    "refused, and the largest of factors or weights. Steps: the same for every α and size, or "
    "chosen for each; those of pictures are constant.",
    "tuning": "Ratings, all that was tried, with one seed: the mean log-likelihood of training "
    "ratings, and the RMSE on the validation split, by which a is chosen.",
    "losses": "Training log-likelihood lost from the largest minibatch to the smallest: mean over "
    "seeds; how much more than SGLD loses, and by how much that may differ by chance, "
    f"{RATE:.0%} false alarms in the whole table.",
    "modes": "Training log-likelihood with the largest minibatch: mean over seeds; how far above "
    f"SGLD's, and by how much that may differ by chance, {RATE:.0%} false alarms in the whole "
    "table.",
}


def summarise(config: Sizes, results: Mapping[str, CellResult]) -> Tables:
    done = cells(config)
    rated = [cell for cell in done if cell["of"] == RATINGS]
    runs = Table.stack(
        CAPTIONS["runs"], [row for cell in done for row in _rows(config, cell, results[cell.id])]
    )
    tuning = Table.stack(CAPTIONS["tuning"], [_tuned(cell, results[cell.id]) for cell in rated])
    losses = [row for setting in SETTINGS for row in _losses(config, runs, *setting)]
    modes = [row for setting in SETTINGS for row in _modes(config, runs, *setting)]
    return {
        "runs": runs,
        "tuning": tuning,
        "losses": Table.stack(CAPTIONS["losses"], losses),
        "modes": Table.stack(CAPTIONS["modes"], modes),
    }


def _rows(config: Sizes, cell: Cell, result: CellResult) -> Iterator[dict[str, Any]]:
    base = {"of": cell["of"], "alpha": cell["alpha"]}
    measured = {name: result[name] for name in MEASURED}
    if cell["of"] == DIGITS:
        source = ml.SYNTHETIC if config.source == "synthetic" else ml.REAL
        at = {"source": source, "size": cell["size"], "steps": FIXED, "step": config.step}
        yield {**base, **at, "seed": cell["seed"], **measured}
        return
    steps = np.where(result["is_own"], OWN, FIXED).tolist()
    at = {"source": str(result["source"]), "size": result["size"].tolist(), "steps": steps}
    yield {**base, **at, "step": result["a"], "seed": result["seed"], **measured}


def _tuned(cell: Cell, result: CellResult) -> dict[str, Any]:
    names = {"size": "size", "a": "a", "train": "train", "validation": "test"}
    names |= {"divergences": "divergences", "largest": "largest"}
    columns = {name: result[f"tuning_{column}"] for name, column in names.items()}
    return {"alpha": cell["alpha"], **columns}


def _trains(config: Sizes, runs: Table, of: str, steps: str, size: int) -> np.ndarray:
    """A row for each α, a column for each seed."""
    part = runs.where(of=of, steps=steps, size=size)
    return np.array(
        [
            [part.where(alpha=alpha, seed=seed)["train"].item() for seed in range(config.num_seeds)]
            for alpha in config.alphas
        ]
    )


def _losses(config: Sizes, runs: Table, of: str, steps: str) -> list[dict[str, Any]]:
    large, small = (_trains(config, runs, of, steps, end(config.sizes)) for end in (max, min))
    return _compared(config, large - small, of, steps, "loss", "more_than_sgld")


def _modes(config: Sizes, runs: Table, of: str, steps: str) -> list[dict[str, Any]]:
    values = _trains(config, runs, of, steps, max(config.sizes))
    return _compared(config, values, of, steps, "train", "above_sgld")


def _compared(
    config: Sizes, values: np.ndarray, of: str, steps: str, name: str, less: str
) -> list[dict[str, Any]]:
    """Each α with SGLD; a family is all α < 2 in all settings."""
    give = spread(values).half_width((len(config.alphas) - 1) * len(SETTINGS))
    means = values.mean(axis=1)
    plain = means[config.alphas.index(2.0)]
    return [
        {"of": of, "steps": steps, "alpha": alpha, name: mean, less: mean - plain}
        | {"give_or_take": give if alpha < 2 else np.nan}
        for alpha, mean in zip(config.alphas, means.tolist(), strict=True)
    ]


def checks(config: Sizes, tables: Tables) -> list[Check]:
    rows = [row for row in tables["losses"].rows() if row["alpha"] < 2]
    return [
        Check.below(
            f"{row['of']}, steps {row['steps']}: training log-likelihood lost from "
            f"n = {max(config.sizes)} to {min(config.sizes)}, α = {row['alpha']:g} less SGLD's",
            row["more_than_sgld"],
            0.0,
            source="paper",
            reason=f"{UNITS[row['of']]}, ± {row['give_or_take']:.2g}; the supplement finds SG-FLA "
            "the more robust",
            explanation=NO_NUMBERS,
        )
        for row in rows
    ]


def verdict(config: Sizes, tables: Tables, checks: Sequence[Check]) -> Verdict:
    """Reproduced if all lose less than SGLD; not if one loses more; else it cannot be told."""
    words = " ".join(_sentences(config, tables))
    made = [of for of, part in groups(tables["runs"], "of") if part["source"][0] == ml.SYNTHETIC]
    if made:
        return Verdict("measured here", f"On synthetic {' and '.join(sorted(made))}. {words}")
    less, more, count = _told(tables["losses"], "more_than_sgld")
    said = (
        f"Of {count} comparisons, SG-FLA can be told to lose less than SGLD in {less}, more in "
        f"{more}; of the others it cannot be told ({RATE:.0%} false alarms in all)."
    )
    if more:
        return Verdict("not reproduced", f"{said} {words}")
    if less == count:
        return Verdict("reproduced", f"{said} {words}")
    return Verdict("measured here", f"It cannot be told. {said} {words}")


def _told(table: Table, column: str) -> tuple[int, int, int]:
    """How many α are below SGLD and how many above by more than chance, and of how many."""
    rows = [row for row in table.rows() if row["alpha"] < 2]
    below = sum(row[column] < -row["give_or_take"] for row in rows)
    above = sum(row[column] > row["give_or_take"] for row in rows)
    return below, above, len(rows)


def _sentences(config: Sizes, tables: Tables) -> Iterator[str]:
    below, above, count = _told(tables["modes"], "above_sgld")
    yield (
        f"With minibatches of {max(config.sizes)} SG-FLA can be told to learn better than SGLD in "
        f"{above} of {count} comparisons and worse in {below} ({RATE:.0%} false alarms in all)."
    )
    for of, steps in SETTINGS:
        lost, modes = (tables[name].where(of=of, steps=steps) for name in ("losses", "modes"))
        plain = config.alphas.index(2.0)
        yield (
            f"On {of}, with steps {steps}, SGLD's training log-likelihood is "
            f"{modes['train'][plain]:.4g} {UNITS[of]} with minibatches of {max(config.sizes)} "
            f"and {lost['loss'][plain]:.3g} lower with {min(config.sizes)}; "
            f"SG-FLA's is higher with the largest by {_listed(modes, 'above_sgld')}, and it "
            f"loses more to the smallest by {_listed(lost, 'more_than_sgld')}."
        )
    yield from _of_tuning(config, tables["tuning"])
    refused = int(tables["runs"]["divergences"].sum())
    yield f"{refused or 'No'} step{'' if refused == 1 else 's'} diverged in these runs."


def _listed(table: Table, column: str) -> str:
    rows = [row for row in table.rows() if row["alpha"] < 2]
    give = rows[0]["give_or_take"]
    values = ", ".join(f"{row[column]:+.3g} (α = {row['alpha']:g})" for row in rows)
    return f"{values}, each ± {give:.2g}"


def _of_tuning(config: Sizes, table: Table) -> Iterator[str]:
    """The same question at every a that was tried: by one seed, so that nothing is told by it."""
    large, small = (table.where(size=end(config.sizes)) for end in (max, min))
    lost = {
        alpha: large.where(alpha=alpha)["train"] - small.where(alpha=alpha)["train"]
        for alpha in config.alphas
    }
    less = ", ".join(
        f"{int((lost[alpha] < lost[2.0]).sum())} (α = {alpha:g})"
        for alpha in config.alphas
        if alpha < 2
    )
    yield (
        f"Of {len(config.choices)} values of a, the same for all, SG-FLA loses less than SGLD by "
        f"one seed in {less}."
    )


def figures(config: Sizes, tables: Tables) -> dict[str, Figure]:
    figure = new_figure(12, 8)
    top, bottom = figure.subplots(2, 2, sharex=True)
    runs = tables["runs"]
    for axes, of, name in (
        (top[0], RATINGS, "train"),
        (top[1], DIGITS, "train"),
        (bottom[0], RATINGS, "test"),
        (bottom[1], DIGITS, "test"),
    ):
        _draw(axes, config, runs.where(of=of), name)
    top[0].set(title="Ratings, training", ylabel="log-likelihood of a rating, nats")
    top[1].set(title="Pictures, training", ylabel="log-likelihood of an image, nats")
    bottom[0].set(title="Ratings, test", ylabel="RMSE", yscale="log")
    plain_ticks(bottom[0].yaxis, (1, 1.2, 1.5, 2, 3, 5, 8, 9))
    bottom[1].set(title="Pictures, test", ylabel="log-likelihood of an image, nats")
    note(top[0], "hollow: a chosen for α and size")
    note(top[1], "arrows: below the axis")
    for axes in bottom:
        axes.set(xlabel="size of the minibatch", xscale="log")
        axes.set_xticks(config.sizes, [f"{size:,}" for size in config.sizes])
    legend_below(figure, top[0], len(config.alphas))
    return {"minibatch-size": figure}


def _draw(axes: Axes, config: Sizes, table: Table, name: str) -> None:
    """Means over seeds with their ranges; each α, and its own steps, a little to the side."""
    lowest = _edge(table[name]) if name == "train" else -np.inf
    for place, alpha in enumerate(config.alphas):
        colour: Any = GREY if alpha == 2 else spread_colour(alpha, 1.6, 0.85)
        shift = 1.05 ** (place - (len(config.alphas) - 1) / 2)
        for steps in (FIXED, OWN):
            part = table.where(alpha=alpha, steps=steps)
            sizes = np.unique(part["size"])
            values = [part.where(size=size)[name] for size in sizes.tolist()]
            means = np.array([one.mean() for one in values])
            look: Any = {"color": colour, "marker": "o", "ms": 5, "capsize": 2}
            if steps == OWN:
                look |= {"mfc": "white", "ls": "", "alpha": 0.7}
            label = "SGLD (α = 2)" if alpha == 2 else f"SG-FLA, α = {alpha:g}"
            places = sizes * shift * (ASIDE if steps == OWN else 1)
            axes.errorbar(
                places,
                np.where(means < lowest, np.nan, means),
                yerr=[np.ptp(one) / 2 for one in values],
                label=label if steps == FIXED else None,
                **look,
            )
            below = places[means < lowest]
            axes.plot(below, np.full(len(below), lowest), color=colour, marker=CARETDOWN, ls="")


def _edge(values: np.ndarray) -> float:
    """Below it a run would squeeze all others."""
    low, high = np.quantile(values, (0.25, 0.75)) if len(values) else (0.0, 0.0)
    return float(low - EDGE * (high - low))


EXPERIMENT = Experiment(
    name="minibatch-size",
    title="Small minibatches, and the training likelihood",
    paper_item="Supplement, SG-FLA",
    question="Does SG-FLA stand small minibatches better than SGLD, and find better modes?",
    profiles={
        "quick": Sizes(
            set="small",
            source="synthetic",
            sizes=(10, 100),
            alphas=(2.0, 1.6),
            choices=(1e-6, 1e-5),
            rating_steps=40,
            picture_steps=10,
            num_seeds=2,
            num_train=200,
            num_judged=10,
            num_hidden=6,
            num_temperatures=20,
            a=1e-6,
        ),
        "paper": Sizes(
            set="ml-1m",
            source="mnist",
            sizes=(50, 200, 1000, 5000),
            alphas=(2.0, 1.9, 1.8, 1.7, 1.6),
            choices=(3e-9, 1e-8, 3e-8, 1e-7, 3e-7, 1e-6, 1e-5),
            rating_steps=20_000,
            picture_steps=500,
            num_seeds=6,
            num_train=10_000,
            num_judged=200,
            num_hidden=100,
            num_temperatures=2000,
        ),
    },
    captions={
        "minibatch-size": "Training log-likelihood and the test split against the size of the "
        "minibatch, for SGLD and SG-FLA, on ratings and on the belief network: means and ranges "
        "over seeds. Hollow points, to the right of the others, have steps that were chosen for "
        "their α and size; arrows stand for runs below the axis."
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
