r"""The supplement's note on SG-FLA: its training likelihood, and how it takes small minibatches.

.. math:: x' = x + η\, c_α\, \widehat{∇\log φ}(x; Ω) + η^{1/α}\, ξ, \qquad |Ω| = n,

on ratings and on the belief network, with everything fixed but n: the smaller n, the larger the
variance of the gradient.  "We did not observe that SG-FLA is able to find a better mode in a
systematic way.  However, we did observe that SG-FLA is more robust to the size of the minibatches
when compared to SGLD."  What each α loses from the largest n to the smallest says which it is.

On ratings all α and sizes have the steps (a/n)^0.51 with one a, as one with smaller steps would
lose less by that alone; beside it, a is chosen on a validation split for each α and size.  The
drift's step of a row is bounded by its curvature, without which exact jumps diverge.

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

from levymc import schedules
from levymc_lab import data
from levymc_lab.framework import Cell, CellResult, Check, Experiment, Table, Tables, Verdict
from levymc_lab.framework.style import GREY, new_figure, note

from . import _movielens as ml
from . import sbn_stepsize as sbn
from ._shared import gathered, groups, legend_below, plain_ticks, spread_colour

POWER = 0.51
TRAINED = 100_000  # ratings whose training likelihood is looked at
RATINGS, DIGITS = "ratings", "pictures"
FIXED, OWN = "the same for all", "of its own"
UNITS = {RATINGS: "nats a rating", DIGITS: "nats an image"}
NO_NUMBERS = (
    "The supplement gives no number, size, step or model. Here jumps do not make up for the "
    "variance of the gradient: they come on top of it."
)


@dataclass(frozen=True)
class Sizes:
    """Sizes.

    set, source: of ratings and of pictures, as the other experiments name them.
    sizes: of minibatches.
    a: of the steps on ratings that are compared; choices: of those that are chosen.
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
    a: float = 1e-6

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
            {"of": DIGITS, "size": size, "alpha": alpha},
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
    return {
        name: sbn.likelihood(*known, part[: config.num_judged], config.num_temperatures).mean
        for name, part in (("train", images.train), ("test", images.test))
    }


def rate(config: Sizes, cell: Cell, key: Any) -> CellResult:
    """Choose a for each size on the validation split; run each with its own, and with the one."""
    key_tune, key_report = jax.random.split(key)
    tuning, part = (ml.part(config.set, is_tuning=is_tuning) for is_tuning in (True, False))
    scores = np.array(
        [
            [_last(config, tuning, cell["alpha"], size, a, 0, key_tune)[1] for a in config.choices]
            for size in config.sizes
        ]
    )
    chosen = np.array(config.choices)[np.argmin(scores, axis=1)]
    fixed = np.full_like(chosen, config.a)
    found = [
        {"size": size, "a": a, "is_own": is_own, "train": train, "test": test}
        for is_own, values in ((False, fixed), (True, chosen))
        for size, a in zip(config.sizes, values.tolist(), strict=True)
        for seed, k in enumerate(jax.random.split(key_report, config.num_seeds))
        for train, test in [_last(config, part, cell["alpha"], size, a, seed, k)]
    ]
    return {**gathered(found), "source": part.source}


def _last(
    config: Sizes, part: ml.Part, alpha: float, size: int, a: float, seed: int, key: Any
) -> tuple[float, float]:
    """Mean log-likelihood of training ratings by the last draw, and its error on the test split."""
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
    return -(train**2) / 2 - np.log(2 * np.pi) / 2, test


def _some(ratings: data.Ratings) -> data.Ratings:
    """Of many ratings a part, always the same."""
    kept = np.random.default_rng(0).permutation(ratings.num_ratings)[:TRAINED]
    columns = {name: getattr(ratings, name)[kept] for name in ("users", "items", "codes")}
    return ratings._replace(**columns)


def summarise(config: Sizes, results: Mapping[str, CellResult]) -> Tables:
    rows = [row for cell in cells(config) for row in _rows(config, cell, results[cell.id])]
    runs = Table.stack(
        "Each run: the mean log-likelihood of what was learnt from, by the last draw, and on the "
        "test split the RMSE of ratings or the mean log-likelihood of images. Steps: the same for "
        "every α and size, or chosen for each; those of pictures are constant.",
        rows,
    )
    return {"runs": runs, "losses": Table.stack(LOSSES, _losses(config, runs))}


LOSSES = (
    "Training log-likelihood lost from the largest minibatch to the smallest, with the same steps "
    "for every α: mean over seeds, and what their ranges would let it differ by; and how much more "
    "than SGLD loses."
)


def _rows(config: Sizes, cell: Cell, result: CellResult) -> Iterator[dict[str, Any]]:
    base = {"of": cell["of"], "alpha": cell["alpha"]}
    if cell["of"] == DIGITS:
        source = ml.SYNTHETIC if config.source == "synthetic" else ml.REAL
        measured = {"train": float(result["train"]), "test": float(result["test"])}
        at = {"source": source, "size": cell["size"], "steps": FIXED, "step": config.step}
        yield {**base, **at, **measured}
        return
    steps = np.where(result["is_own"], OWN, FIXED).tolist()
    at = {"source": str(result["source"]), "size": result["size"].tolist(), "steps": steps}
    yield {**base, **at, "step": result["a"], "train": result["train"], "test": result["test"]}


def _losses(config: Sizes, runs: Table) -> list[dict[str, Any]]:
    found = []
    for of in (RATINGS, DIGITS):
        part = runs.where(of=of, steps=FIXED)
        plain, give = _loss(config, part.where(alpha=2.0))
        for alpha in config.alphas:
            loss, range_ = _loss(config, part.where(alpha=alpha))
            row = {"of": of, "alpha": alpha, "loss": loss, "give_or_take": range_}
            found.append({**row, "more_than_sgld": loss - plain, "in_all": range_ + give})
    return found


def _loss(config: Sizes, part: Table) -> tuple[float, float]:
    """What is lost from the largest to the smallest, and half of both ranges over seeds."""
    large, small = (part.where(size=end(config.sizes))["train"] for end in (max, min))
    return float(large.mean() - small.mean()), float(np.ptp(large) + np.ptp(small)) / 2


def checks(config: Sizes, tables: Tables) -> list[Check]:
    rows = [row for row in tables["losses"].rows() if row["alpha"] < 2]
    return [
        Check.below(
            f"{row['of']}: training log-likelihood lost from n = {max(config.sizes)} to "
            f"{min(config.sizes)}, α = {row['alpha']:g} less SGLD's",
            row["more_than_sgld"],
            0.0,
            source="paper",
            reason=f"{UNITS[row['of']]}; the supplement finds SG-FLA the more robust",
            explanation=NO_NUMBERS,
        )
        for row in rows
    ]


def verdict(config: Sizes, tables: Tables, checks: Sequence[Check]) -> Verdict:
    losses = tables["losses"]
    words = " ".join(_of(config, tables, of) for of in (RATINGS, DIGITS))
    made = [of for of, part in groups(tables["runs"], "of") if part["source"][0] == ml.SYNTHETIC]
    if made:
        return Verdict("measured here", f"On synthetic {' and '.join(sorted(made))}. {words}")
    heavy = losses.rows()
    heavy = [row for row in heavy if row["alpha"] < 2]
    better = [row for row in heavy if row["more_than_sgld"] < -row["in_all"]]
    worse = [row for row in heavy if row["more_than_sgld"] > row["in_all"]]
    said = (
        f"Of {len(heavy)} comparisons, SG-FLA loses less than SGLD in {len(better)} by more than "
        f"the seeds differ, more in {len(worse)}, and in the rest they cannot be told apart."
    )
    kind: Any = "reproduced" if len(better) == len(heavy) else "not reproduced"
    return Verdict(kind, f"{said} {words}")


def _of(config: Sizes, tables: Tables, of: str) -> str:
    """What each α loses, and whether one has a better mode at the largest minibatch."""
    rows = tables["losses"].where(of=of).rows()
    lost = ", ".join(
        f"{r['loss']:.3g} ± {r['give_or_take']:.2g} (α = {r['alpha']:g})" for r in rows
    )
    runs = tables["runs"].where(of=of, steps=FIXED, size=max(config.sizes))
    ends = ", ".join(f"{part['train'].mean():.4g}" for _, part in groups(runs, "alpha"))
    return (
        f"On {of} the training log-likelihood falls from minibatches of {max(config.sizes)} to "
        f"{min(config.sizes)} by {lost}, {UNITS[of]}; at the largest it is {ends} for these α."
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
    for axes in bottom:
        axes.set(xlabel="size of the minibatch", xscale="log")
        axes.set_xticks(config.sizes, [f"{size:,}" for size in config.sizes])
    legend_below(figure, top[0], len(config.alphas))
    return {"minibatch-size": figure}


def _draw(axes: Axes, config: Sizes, table: Table, name: str) -> None:
    """Means over seeds with their ranges; each α a little to the side of the one before."""
    for place, alpha in enumerate(config.alphas):
        colour: Any = GREY if alpha == 2 else spread_colour(alpha, 1.6, 0.85)
        shift = 1.05 ** (place - (len(config.alphas) - 1) / 2)
        for steps in (FIXED, OWN):
            part = table.where(alpha=alpha, steps=steps)
            sizes = np.unique(part["size"])
            values = [part.where(size=size)[name] for size in sizes.tolist()]
            look: Any = {"color": colour, "marker": "o", "ms": 5, "capsize": 2}
            if steps == OWN:
                look |= {"mfc": "white", "ls": "", "alpha": 0.7}
            label = "SGLD (α = 2)" if alpha == 2 else f"SG-FLA, α = {alpha:g}"
            axes.errorbar(
                sizes * shift,
                [one.mean() for one in values],
                yerr=[np.ptp(one) / 2 for one in values],
                label=label if steps == FIXED else None,
                **look,
            )


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
        ),
        "paper": Sizes(
            set="ml-1m",
            source="mnist",
            sizes=(50, 200, 1000, 5000),
            alphas=(2.0, 1.9, 1.8, 1.7, 1.6),
            choices=(1e-7, 1e-6, 1e-5, 1e-4),
            rating_steps=2000,
            picture_steps=500,
            num_seeds=2,
            num_train=10_000,
            num_judged=200,
            num_hidden=100,
            num_temperatures=300,
        ),
    },
    captions={
        "minibatch-size": "Training log-likelihood and the test split against the size of the "
        "minibatch, for SGLD and SG-FLA, on ratings and on the belief network: means and ranges "
        "over seeds."
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
