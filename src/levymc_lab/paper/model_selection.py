r"""Future direction (iv): does the evidence choose the size of a model?

.. math:: \log Z = \int_0^1 E_β[\log L]\, dβ, \qquad β_i = (i/K)^5,

along power posteriors p L^β.  On ratings, where L^β is a likelihood of precision β τ, the Gibbs
sampler draws each of them exactly, from two starts: the rank L with the most evidence stands beside
that with the least error on ratings that were held out.  On a belief network the evidence
integrates over all weights and sums over all hidden units: that is in reach for few units, whose
2^J states can be added up, and small pictures, from full gradients (MALA) and from minibatches
(SGLD).  For as many units as the paper has, it is not: those are compared by the annealed
likelihood of pictures that were held out.

References: [simsekli2017], section 6; [friel2008], [xie2011].  Departures: the paper names the use
and measures nothing.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from levymc import adapt, mafla, models, sample, sgld, whole
from levymc_lab import data
from levymc_lab.framework import Cell, CellResult, Check, Experiment, Table, Tables, Verdict
from levymc_lab.framework.style import BLACK, GREY, new_figure

from . import _movielens as ml
from . import sbn_stepsize
from ._shared import failures, legend_below

CHUNK = 1 << 15  # ratings whose residuals are made at once, in each of the chains
SURE = 3.0  # standard errors
KNOWN_RUNGS = 30
GOOD = 0.002  # of RMSE: what is as near to the least is as good, as in `movielens-posterior`
INK = 64  # of 255: a small picture's pixel is on from there
POOL = 4  # pixels of a picture in one of a small picture, each way
FULL, MINIBATCH = "full gradients", "minibatches"
LOG_2_PI = math.log(2 * math.pi)
TRAINED = {"kind": "best", "alpha": 2.0, "step": 1e-4}  # SGLD as in `sbn-stepsize`
COSTS = (
    "it asks how well the prior foretells all ratings, and every column of N(0, 1) costs it; the "
    "error, how well the posterior does once nine tenths are known"
)


@dataclass(frozen=True)
class Selection:
    """Sizes.

    num_rungs: K.
    set, ranks: ratings, and the L that are compared.
    burn_in, num_sweeps, every: sweeps of each of two Gibbs chains for each β, before and after,
        and how many of the latter are looked at.
    predicting: sweeps whose mean predicts the ratings that were held out.
    source, units: "mnist", or "synthetic" pictures; the J that are added up.
    num_pictures, batch_size, num_chains, num_steps: of these, small ones.
    larger, num_train, num_test, num_iterations, num_temperatures: the J that are compared by
        held-out pictures, and how.
    known_steps: of the chains on a regression whose evidence is known.
    """

    num_rungs: int
    set: str
    ranks: tuple[int, ...]
    burn_in: int
    num_sweeps: int
    every: int
    predicting: int
    source: str
    units: tuple[int, ...]
    num_pictures: int
    batch_size: int
    num_chains: int
    num_steps: int
    larger: tuple[int, ...]
    num_train: int
    num_test: int
    num_iterations: int
    num_temperatures: int
    known_steps: int
    known_chains: int = 32


def needs(config: Selection) -> None:
    """Refuse at once where data are missing."""
    ml.check_there(config.set)
    if config.source == "mnist":
        data.load("mnist")


def cells(config: Selection) -> list[Cell]:
    ways = (FULL, MINIBATCH)
    return [
        *(Cell(f"known-{way.split()[0]}", {"kind": "known", "way": way}) for way in ways),
        *(Cell(f"rank-{rank}", {"kind": "rank", "size": rank}) for rank in config.ranks),
        *(
            Cell(f"units-{size}-{way.split()[0]}", {"kind": "units", "size": size, "way": way})
            for size in config.units
            for way in ways
        ),
        *(Cell(f"held-out-{size}", {"kind": "held", "size": size}) for size in config.larger),
    ]


def run_cell(config: Selection, cell: Cell, key: Any) -> CellResult:
    run: Callable[..., CellResult] = {
        "known": _known,
        "rank": _rank,
        "units": _units,
        "held": _held_out,
    }[cell["kind"]]
    return run(config, cell, key)


def _reported(found: adapt.PathEvidence) -> dict[str, Any]:
    kept = {name: value for name, value in found._asdict().items() if name != "warnings"}
    return {**kept, "warnings": " ".join(found.warnings)}


def _integrated(
    cell: Cell, logprior: Any, of_one: Any, points: Any, *given: Any, **how: Any
) -> Any:
    """By MALA from all data, or by SGLD from minibatches, whose steps are a quarter as long."""
    if cell["way"] == FULL:
        how.pop("batch_size")
        return adapt.thermodynamic_integration(
            logprior, of_one, _mala, *given, data=points, progress=False, **how
        )
    step_size, *rest = given
    shorter = lambda beta: step_size(beta) / 4  # noqa: E731
    return adapt.thermodynamic_integration(
        logprior, of_one, sgld, shorter, *rest, data=points, progress=False, **how
    )


def _mala(logdensity_fn: Any, step_size: Any) -> Any:
    return mafla(logdensity_fn, step_size, 2.0)


def _known(config: Selection, cell: Cell, key: Any) -> CellResult:
    """A regression of a hundred points on five covariates, whose evidence is a normal density."""
    random = np.random.default_rng(0)
    design, noise = random.normal(size=(100, 5)), random.normal(size=100)
    y = design @ random.normal(size=5) + noise
    covariance = np.eye(100) + design @ design.T
    _, logdet = np.linalg.slogdet(covariance)
    truth = -(100 * LOG_2_PI + logdet + y @ np.linalg.solve(covariance, y)) / 2
    points = np.column_stack([design, y]).astype(np.float32)
    found = _integrated(
        cell,
        lambda w: -jnp.sum(w**2) / 2,
        lambda w, point: -((point[5] - point[:5] @ w) ** 2 + LOG_2_PI) / 2,
        points,
        lambda beta: 0.4 / (1 + 100 * beta),
        key,
        jnp.zeros((config.known_chains, 5), jnp.float32),
        config.known_steps,
        betas=KNOWN_RUNGS,
        batch_size=25,
    )
    return {**_reported(found), "truth": truth}


def _rank(config: Selection, cell: Cell, key: Any) -> CellResult:
    """The evidence by two Gibbs chains for each β, and the error on held-out ratings."""
    part, key_path, key_predict = ml.part(config.set, is_tuning=False), *jax.random.split(key)
    gibbs, model = _gibbs(part, cell["size"]), _factorization(part, cell["size"])
    # Near zero, and from the prior: where both lead to the same mean, neither is remembered.
    starts = [model.init(key, scale, jnp.float32) for scale in (ml.START_SCALE, 1.0)]
    powers = (np.arange(config.num_rungs + 1) / config.num_rungs) ** 5
    found = adapt.path_evidence(powers, power_draws(config, part, gibbs, starts, powers, key_path))
    predicted = _predicted(config, part, gibbs, starts[0], key_predict)
    return {**_reported(found), **predicted, "source": part.source}


def _factorization(part: ml.Part, rank: int) -> models.MatrixFactorization:
    return models.matrix_factorization(*part.counts, rank=rank)


def _gibbs(part: ml.Part, rank: int) -> models.GibbsFactorization:
    train = part.train
    return models.gibbs_factorization(
        train.users, train.items, train.values, *part.counts, rank=rank, center=part.center
    )


def power_draws(
    config: Selection, part: ml.Part, gibbs: Any, starts: list[Any], powers: np.ndarray, key: Any
) -> np.ndarray:
    """log L at draws of p L^β, with the axes (β, start, draw): β is the precision of a rating."""
    made = sample(
        [
            dataclasses.replace(gibbs.algorithm, precision=np.float32(beta))
            for beta in powers
            for _ in starts
        ],
        key,
        jax.tree.map(lambda *leaves: jnp.stack([*leaves] * len(powers)), *starts),
        config.num_sweeps,
        burn_in=config.burn_in,
        thin=config.every,
        minibatches=whole(gibbs.data),
        keep=_loglikelihood(part),
        progress=False,
    )
    if made.is_interrupted:
        raise KeyboardInterrupt
    return np.asarray(made.positions, np.float64).reshape(len(powers), len(starts), -1)


def _loglikelihood(part: ml.Part) -> Callable[[Any], Any]:
    """log L of a position, some ratings at a time: all of all chains would not fit."""
    train = part.train
    size = min(CHUNK, train.num_ratings)
    padding = -train.num_ratings % size
    columns = (train.users, train.items, train.values - part.center, np.ones(train.num_ratings))
    parts = tuple(
        jnp.asarray(np.pad(column, (0, padding)).reshape(-1, size), kind)
        for column, kind in zip(
            columns, (jnp.int32, jnp.int32, jnp.float32, jnp.float32), strict=True
        )
    )

    def loglikelihood(position: Any) -> Any:
        def squares(chunk: Any) -> Any:
            users, items, values, is_there = chunk
            products = jnp.sum(position["users"][users] * position["items"][items], axis=-1)
            return jnp.sum(is_there * (values - products) ** 2)

        total = jnp.sum(jax.lax.map(squares, parts))
        return -(total + np.float32(train.num_ratings * LOG_2_PI)) / 2

    return loglikelihood


def _predicted(
    config: Selection, part: ml.Part, gibbs: Any, start: Any, key: Any
) -> dict[str, float]:
    """RMSE of the predictive mean, and the mean log density of a held-out rating."""
    predict = ml.predictor(part, part.center)
    marks = np.arange(1, config.predicting + 1) + config.burn_in
    mean, density = np.zeros(part.test.num_ratings), np.zeros(part.test.num_ratings)
    for count, visit in enumerate(ml.watch(gibbs, start, key, marks), 1):
        drawn = predict(visit.position).astype(np.float64)
        mean += (drawn - mean) / count
        density += (np.exp(-((part.test.values - drawn) ** 2) / 2) - density) / count
    logs = np.log(np.maximum(density, 1e-300)) - LOG_2_PI / 2
    return {"rmse": ml.rmse(mean, part), "log_predictive": float(logs.mean())}


@lru_cache(maxsize=1)
def small_pictures(source: str, count: int) -> np.ndarray:
    """Of 7 × 7 pixels, 0 or 1: means over four by four."""
    greys = data.synthetic_images(count, 0)[0] if source == "synthetic" else None
    if greys is None:
        greys = data.load(source).train_images[:count]
    side = 28 // POOL
    pooled = np.asarray(greys, float).reshape(count, side, POOL, side, POOL).mean(axis=(2, 4))
    return (pooled >= INK).reshape(count, -1).astype(np.float32)


def _units(config: Selection, cell: Cell, key: Any) -> CellResult:
    """The evidence of a belief network with few units, all of whose states are added up."""
    images = small_pictures(config.source, config.num_pictures)
    model = models.sbn(images.shape[1], cell["size"])
    key_start, key_run = jax.random.split(key)
    starts = [
        model.init(key, 1.0, dtype=jnp.float32)  # as the prior
        for key in jax.random.split(key_start, config.num_chains)
    ]
    scale = images.shape[1] * (cell["size"] + 1)
    found = _integrated(
        cell,
        model.logprior,
        lambda position, image: model.exact_loglikelihood(position, image[None])[0],
        images,
        lambda beta: scale ** (-1 / 3) / (1 + beta * len(images) / 4),
        key_run,
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts),
        config.num_steps,
        betas=config.num_rungs,
        batch_size=config.batch_size,
        thin=1 if cell["way"] == MINIBATCH else 5,
    )
    return {**_reported(found), "source": ml.SYNTHETIC if config.source == "synthetic" else ml.REAL}


def _held_out(config: Selection, cell: Cell, key: Any) -> CellResult:
    """The annealed likelihood of held-out pictures after SGLD on others."""
    sizes = sbn_stepsize.StepSizes(
        source=config.source,
        num_train=config.num_train,
        num_test=config.num_test,
        num_hidden=cell["size"],
        num_iterations=config.num_iterations,
        short_iterations=1,
        fewer_test=1,
        num_seeds=1,
        num_temperatures=config.num_temperatures,
    )
    model = sbn_stepsize.network(cell["size"], sizes.sweeps)
    key_chain, key_test = jax.random.split(key)
    given = {**TRAINED, "length": config.num_iterations}
    run = sbn_stepsize.chain(sizes, given, model, key_chain)
    last = jax.tree.map(lambda leaf: jnp.asarray(leaf[0, -1]), run.positions)
    tests = sbn_stepsize.split(sizes).test
    found = sbn_stepsize.likelihood(sizes, model, key_test, last, tests, config.num_temperatures)
    return {"loglikelihood": found.mean, "error": found.standard_error}


NUMBERS = (
    "value",
    "standard_error",
    "trapezoid",
    "discretisation_error",
    "stepping_stones",
    "stepping_stones_error",
    "step_bias",
    "step_bias_error",
    "change",
)
CAPTIONS = {
    "known": "A regression whose log evidence is known: thermodynamic integration with its "
    "standard error, the plain trapezoid, what the rule between rungs may be off by, stepping "
    "stones, how far halving SGLD's steps moved it, and by how much more the second halves of the "
    "chains give than the first.",
    "rank": "Ratings: the log evidence of each rank by the same two ways, and RMSE and mean log "
    "density of ratings that were held out.",
    "units": "Small pictures: the log evidence of each number of hidden units.",
    "held": "Pictures that were held out: their mean annealed log-likelihood after SGLD with each "
    "number of hidden units, in nats.",
}
EXTRAS = {
    "known": ("way", "truth", "warnings"),
    "rank": ("size", "rmse", "log_predictive", "source", "warnings"),
    "units": ("size", "way", "source", "warnings"),
    "held": ("size", "loglikelihood", "error"),
}


def summarise(config: Selection, results: Mapping[str, CellResult]) -> Tables:
    tables: dict[str, Table] = {}
    curves = []
    for kind, caption in CAPTIONS.items():
        rows = []
        for cell in cells(config):
            if cell["kind"] != kind or cell.id not in results:
                continue
            result = results[cell.id]
            known = {**{name: _plain(result[name]) for name in result}, **cell.parameters}
            names = (*EXTRAS[kind], *(() if kind == "held" else NUMBERS))
            rows.append({name: known[name] for name in names})
            if kind != "held":
                curves.append({"cell": cell.id, **_curve(result)})
        if rows:
            tables[kind] = Table.stack(caption, rows)
    if curves:
        tables["curves"] = Table.stack("E_β[log L] with its standard error, along β.", curves)
    return tables


def _plain(value: Any) -> Any:
    array = np.asarray(value)
    return array.item() if array.ndim == 0 else array


def _curve(result: CellResult) -> dict[str, np.ndarray]:
    names = {"beta": "betas", "mean": "means", "error": "standard_errors"}
    return {name: np.asarray(result[place]) for name, place in names.items()}


@dataclass(frozen=True)
class Choice:
    """What has the most evidence, by how much more than the next, and that in standard errors."""

    size: int
    next: int
    lead: float
    error: float

    @property
    def is_sure(self) -> bool:
        return self.lead > SURE * self.error


def chosen(table: Table) -> Choice:
    """Errors are those over chains, of the rule, of SGLD's steps, and of starts not forgotten."""
    rows = sorted(table.rows(), key=lambda row: -row["value"])
    best, following = rows[0], rows[min(1, len(rows) - 1)]
    error = math.hypot(_error(best), _error(following))
    lead = best["value"] - following["value"]
    return Choice(int(best["size"]), int(following["size"]), lead, error)


def _error(row: Mapping[str, Any]) -> float:
    names = ("standard_error", "discretisation_error", "step_bias", "change")
    parts = [row[name] for name in names]
    return math.sqrt(sum(part**2 for part in parts if math.isfinite(part)))


def checks(config: Selection, tables: Tables) -> list[Check]:
    found = [_check_known(row) for row in (tables["known"].rows() if "known" in tables else [])]
    if "rank" in tables:
        found += _check_ranks(tables["rank"])
    if "units" in tables:
        found += _check_units(tables["units"])
    return found


def _check_known(row: Mapping[str, Any]) -> Check:
    bias = row["step_bias"] if math.isfinite(row["step_bias"]) else 0.0
    spread = row["step_bias_error"] if math.isfinite(row["step_bias_error"]) else 0.0
    # 2 T(η/2) − T(η) has the variance 4 V(η/2) + V(η), of which `spread` holds one of each.
    own = row["standard_error"] * (math.sqrt(3) if spread else 1.0)
    error = math.hypot(own, spread, row["discretisation_error"])
    return Check.below(
        f"evidence of a regression, {row['way']}: from the truth, in standard errors",
        abs(row["value"] - bias - row["truth"]) / error,
        SURE,
        reason="a t law of 31 degrees of freedom is beyond three once in 190 runs; the rule's "
        "own error counts, and of SGLD its bias is taken off as halving its steps foretells",
    )


def _check_ranks(table: Table) -> list[Check]:
    choice, rmse = chosen(table), table["rmse"]
    of_choice = float(table.where(size=choice.size)["rmse"][0])
    return [
        Check.above(
            "lead of the rank with the most evidence over the next, in standard errors",
            choice.lead / choice.error,
            SURE,
            reason="over two starts of the Gibbs sampler, with the error of the rule",
            explanation="two ranks may be as good as each other",
        ),
        Check.below(
            "RMSE of the rank with the most evidence, above the least",
            of_choice - float(rmse.min()),
            GOOD,
            reason="it pays to choose by evidence if the choice predicts as well",
            explanation=f"Evidence and error answer different questions: {COSTS}.",
        ),
    ]


def _check_units(table: Table) -> list[Check]:
    full, estimated = table.where(way=FULL), table.where(way=MINIBATCH)
    if not len(full["size"]) or not len(estimated["size"]):
        return []
    return [
        Check.near(
            "hidden units with the most evidence, by minibatches",
            chosen(estimated).size,
            chosen(full).size,
            0,
            reason="those by full gradients",
            explanation="SGLD's bias, which `step_bias` tells, differs from model to model",
        )
    ]


def verdict(config: Selection, tables: Tables, checks: Sequence[Check]) -> Verdict:
    if failed := failures(checks):
        return Verdict("not reproduced", f"The comparison is not sound: {failed}.")
    parts = [
        *(_of_ranks(tables["rank"]) if "rank" in tables else ()),
        *(_of_units(tables["units"]) if "units" in tables else ()),
        *(_of_held_out(tables["held"]) if "held" in tables else ()),
    ]
    return Verdict("measured here", " ".join(parts))


def _of_ranks(table: Table) -> list[str]:
    choice = chosen(table)
    least = table.rows()[int(np.argmin(table["rmse"]))]
    (row,) = table.where(size=choice.size).rows()
    answer = "cannot be told"
    if choice.is_sure:
        answer = "pays" if row["rmse"] - least["rmse"] <= GOOD else "does not pay"
    made = "" if ml.is_real(table) else " (synthetic ones)"
    return [
        f"On ratings{made} it {answer}: the evidence is largest for rank {choice.size}, by "
        f"{choice.lead:.0f} ± {choice.error:.0f} over rank {choice.next}, whose RMSE is "
        f"{row['rmse']:.4f}; the least, {least['rmse']:.4f}, has rank {least['size']}."
    ]


def _of_units(table: Table) -> list[str]:
    words = []
    for way in (FULL, MINIBATCH):
        part = table.where(way=way)
        if len(part["size"]):
            choice = chosen(part)
            answer = "" if choice.is_sure else ", which cannot be told apart"
            words.append(
                f"by {way} {choice.size}, {choice.lead:.0f} ± {choice.error:.0f} before "
                f"{choice.next}{answer}"
            )
    return [f"Hidden units with the most evidence for small pictures: {'; '.join(words)}."]


def _of_held_out(table: Table) -> list[str]:
    numbers = ", ".join(
        f"{row['size']} units {row['loglikelihood']:.1f} ± {row['error']:.1f}"
        for row in table.rows()
    )
    return [
        f"For pictures of full size the evidence, an integral over all weights, is out of reach; "
        f"held-out pictures have the log-likelihoods {numbers}."
    ]


def figures(config: Selection, tables: Tables) -> dict[str, Figure]:
    figure = new_figure(13, 4.6)
    ranks, units, held = figure.subplots(1, 3)
    _draw_ranks(ranks, tables.get("rank"))
    _draw_units(units, tables.get("units"))
    _draw_held(held, tables.get("held"))
    legend_below(figure, units, 2)
    return {"model-selection": figure}


def _draw_ranks(axes: Axes, table: Table | None) -> None:
    axes.set(title="Ratings", xlabel="rank L", ylabel="log evidence, thousands")
    if table is None:
        return
    errors = [_error(row) / 1000 for row in table.rows()]
    axes.errorbar(table["size"], table["value"] / 1000, errors, color=BLACK, marker="o", capsize=3)
    choice = chosen(table)
    axes.axvline(choice.size, color=BLACK, ls=":", lw=1)
    beside = axes.twinx()
    beside.plot(table["size"], table["rmse"], color="#c2452d", marker="s", ls="--")
    beside.set_ylabel("RMSE on held-out ratings (dashed)", color="#c2452d")
    beside.grid(False)
    axes.set_xticks(table["size"].tolist())


def _draw_units(axes: Axes, table: Table | None) -> None:
    axes.set(title="Small pictures", xlabel="hidden units J", ylabel="log evidence")
    styles: dict[str, dict[str, Any]] = {
        FULL: {"color": BLACK, "marker": "o"},
        MINIBATCH: {"color": GREY, "marker": "s", "ls": "--"},
    }
    for way, style in styles.items():
        part = table.where(way=way) if table is not None else None
        if part is not None and len(part["size"]):
            errors = [_error(row) for row in part.rows()]
            axes.errorbar(part["size"], part["value"], errors, label=way, capsize=3, **style)
            axes.set_xticks(part["size"].tolist())


def _draw_held(axes: Axes, table: Table | None) -> None:
    likelihood = "held-out log-likelihood, nats a picture"
    axes.set(title="Full pictures", xlabel="hidden units J", ylabel=likelihood)
    if table is None:
        return
    values, errors = table["loglikelihood"], table["error"]
    axes.errorbar(table["size"], values, errors, color=BLACK, marker="o", capsize=3)
    axes.set_xticks(table["size"].tolist())


EXPERIMENT = Experiment(
    name="model-selection",
    title="The size of a model by its evidence",
    paper_item="Future direction (iv)",
    question="Does the evidence choose the rank and the hidden units that predict best?",
    profiles={
        "quick": Selection(
            num_rungs=8,
            set="small",
            ranks=(1, 3),
            burn_in=10,
            num_sweeps=20,
            every=4,
            predicting=10,
            source="synthetic",
            units=(1, 2),
            num_pictures=60,
            batch_size=20,
            num_chains=4,
            num_steps=100,
            larger=(4,),
            num_train=300,
            num_test=20,
            num_iterations=20,
            num_temperatures=20,
            known_steps=200,
        ),
        "paper": Selection(
            num_rungs=20,
            set="ml-1m",
            ranks=(2, 3, 4, 5, 7, 10, 15, 20),
            burn_in=30,
            num_sweeps=30,
            every=6,
            predicting=100,
            source="mnist",
            units=(1, 2, 3, 4, 5),
            num_pictures=300,
            batch_size=100,
            num_chains=4,
            num_steps=10_000,
            larger=(10, 25, 50, 100),
            num_train=60_000,
            num_test=500,
            num_iterations=2000,
            num_temperatures=500,
            known_steps=1000,
        ),
    },
    captions={
        "model-selection": "Left: log evidence of each rank of the factorisation (the dotted line "
        "is its choice) and the error on held-out ratings. Middle: log evidence of each number of "
        "hidden units, for pictures of 7 × 7 pixels. Right: annealed log-likelihood of held-out "
        "pictures of full size, where the evidence is out of reach."
    },
    cells=cells,
    run_cell=run_cell,
    summarise=summarise,
    checks=checks,
    verdict=verdict,
    figures=figures,
    dtype="float32",
    needs=needs,
    shows_parts=True,
)
