"""How soon samplers predict MovieLens 1M within 0.002 of a long Gibbs run, in seconds of one core.

The predictive mean of a rating is the mean over a chain's draws.  Compared are the compiled Gibbs
sampler from small factors, and from where some steps of SGLD led; SGLD as `levymc factorize` runs
it; and SGLD with other steps, row steps and batches, also with larger batches late.  Settings, and
when averaging starts, are chosen on a validation split by the time it takes there; seeds and the
test split of what is printed have seen no choice.  Making samplers, compiling and looking at the
error do not count.  Both models have rank 10: that of `factorize`, with biases, and the paper's.

    levymc data import ml-1m --from ml-1m.zip
    python benchmarks/ratings_time.py    # ten minutes; --model paper or factorize for one of them

Without the data nothing is measured, and a line says so.
"""

import argparse
import math
import statistics
import time
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from bars import Bar, missing, show

import levymc
from levymc_lab import data

RANK = 10
GOAL = 0.002  # of RMSE, above the long run of the Gibbs sampler
LONG = 600  # sweeps of that run
START_SCALE = 0.1
TUNING_SEED, SEEDS = 100, (0, 1, 2)


class Model(NamedTuple):
    """What is sampled.

    noise: standard deviation of a rating, in stars; `factorize` estimates 0.79.
    unit: stars to the model's unit.
    s2: of the row steps.
    """

    name: str
    biases: bool
    noise: float
    unit: float
    s2: float


class Stage(NamedTuple):
    """Part of a chain.

    kind: "gibbs", whose steps are sweeps, or "sgld".
    every: steps between draws that count.
    step_size, offset, share: η, c of the row steps 1/(1 + s²τ(d + c)), the batch's share of all.
    """

    kind: str
    steps: int
    every: int = 1
    step_size: float = 0.25
    offset: float = 150.0
    share: float = 0.1

    @property
    def label(self) -> str:
        if self.kind == "gibbs":
            return "Gibbs"
        return f"{self.step_size:g}/{self.offset:g}/{self.share:g}×{self.steps}"


Stages = tuple[Stage, ...]


class Part(NamedTuple):
    """Ratings to learn from, and ratings to predict."""

    train: data.Ratings
    test: data.Ratings


class Draw(NamedTuple):
    """Predictions of a draw, and the seconds that the chain has taken."""

    seconds: float
    predicted: np.ndarray


@cache
def part(*, is_tuning: bool) -> Part:
    train, test = data.split(data.load("ml-1m"), 0, (0.9, 0.1))
    return Part(*data.split(train, 1, (0.9, 0.1))) if is_tuning else Part(train, test)


def sampler(model: Model, stage: Stage, on: Part) -> Any:
    """With one thread."""
    train = on.train
    given: dict[str, Any] = {
        "users": train.users.astype(np.int64),
        "items": train.items.astype(np.int64),
        "ratings": train.values.astype(np.float64) / model.unit,
        "num_users": train.num_users,
        "num_items": train.num_items,
        "rank": RANK,
        "center": float(train.values.mean()) / model.unit,
        "noise_precision": (model.unit / model.noise) ** 2,
        "biases": model.biases,
    }
    if stage.kind == "gibbs":
        return levymc.models.gibbs_factorization(**given)
    plain = levymc.models.matrix_factorization(
        train.num_users, train.num_items, rank=RANK, noise_precision=given["noise_precision"]
    )
    rows = plain.row_preconditioner(train.users, train.items, model.s2, stage.offset)
    return levymc.models.fast_factorization(
        **given,
        batch_size=math.ceil(stage.share * train.num_ratings),
        step_size=stage.step_size,
        preconditioner={name: steps[:, 0] for name, steps in rows.items()},
        curvature=True,
    )


def start(on: Part, seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    shapes = {"users": (1, on.train.num_users, RANK), "items": (1, on.train.num_items, RANK)}
    return {
        name: np.float32(START_SCALE) * generator.standard_normal(shape, np.float32)
        for name, shape in shapes.items()
    }


@jax.jit
def products(position: Any, users: Any, items: Any) -> Any:
    return jnp.sum(position["users"][0, users] * position["items"][0, items], axis=-1)


def run(model: Model, stages: Stages, on: Part, seed: int) -> Iterator[Draw]:
    """A chain through all stages, draw by draw."""
    position, seconds = start(on, seed), 0.0
    users, items = jnp.asarray(on.test.users), jnp.asarray(on.test.items)
    center = float(on.train.values.mean())
    for number, stage in enumerate(stages):
        made, key = sampler(model, stage, on), jax.random.key(1000 * number + seed)
        marks = list(range(stage.every, stage.steps + 1, stage.every))
        for visit, taken in timed_visits(made, key, position, marks):
            seconds += taken
            position = visit.states.position
            predicted = np.asarray(products(position, users, items))
            yield Draw(seconds, center + model.unit * predicted)


def timed_visits(made: Any, key: Any, position: Any, marks: list[int]) -> Iterator[Any]:
    """Each visit of a chain, and the seconds of the processor since the one before."""

    def chain(at: list[int]) -> Iterator[Any]:
        ratings = levymc.whole(made.data)
        return levymc.iterate(made.algorithm, key, position, at[-1], at=at, minibatches=ratings)

    next(chain(marks[:1]))  # compiled before the clock runs
    visits = chain(marks)
    for _ in marks:
        begin = time.process_time()  # one thread: the same on a busy machine
        visit = jax.block_until_ready(next(visits))
        yield visit, time.process_time() - begin


class Curve(NamedTuple):
    """Error of the mean over the draws from the `first` on, against seconds."""

    first: int
    seconds: np.ndarray
    errors: np.ndarray

    def seconds_to(self, goal: float) -> float:
        """Until the error is below and stays there."""
        above = np.flatnonzero(self.errors > goal)
        place = above[-1] + 1 if above.size else 0
        return float(self.seconds[place]) if place < len(self.errors) else math.inf


def curves(draws: list[Draw], on: Part, firsts: tuple[int, ...]) -> list[Curve]:
    found = []
    for first in firsts:
        kept = draws[first:]
        total, errors = np.zeros(on.test.num_ratings), []
        for number, draw in enumerate(kept, start=1):
            total += draw.predicted
            errors.append(float(np.sqrt(np.mean((total / number - on.test.values) ** 2))))
        found.append(Curve(first, np.array([d.seconds for d in kept]), np.array(errors)))
    return found


class Method(NamedTuple):
    """What is compared: chains to choose from, and numbers of draws that may be left out."""

    name: str
    choices: tuple[Stages, ...]
    firsts: tuple[int, ...]


GIBBS = Stage("gibbs", 120)


def methods() -> list[Method]:
    """All of them take some seconds a chain."""
    sgld = [
        Stage("sgld", 3000, 10, eta, offset, 0.1)
        for eta, offset in product((0.2, 0.4, 0.6), (100.0, 300.0))
    ]
    shares = [
        Stage("sgld", int(300 / share), max(1, int(1 / share)), eta, 100.0, share)
        for share, eta in ((0.03, 0.1), (0.03, 0.2), (0.3, 0.2), (0.3, 0.4))
    ]
    early = Stage("sgld", 200, 200, 0.2, 100.0)
    late = [
        Stage("sgld", int(300 / share), max(1, int(1 / share)), eta, 100.0, share)
        for share, eta in ((0.3, 0.2), (0.3, 0.4), (0.5, 0.3))
    ]
    few = (30, 60, 100, 200)
    return [
        Method("Gibbs", ((GIBBS,),), (5, 10, 15, 20, 30)),
        Method(
            "Gibbs after SGLD",
            tuple((Stage("sgld", count, count, 0.4, 100.0), GIBBS) for count in few),
            (1, 3, 6, 11, 16),
        ),
        Method("SGLD as in factorize", ((Stage("sgld", 4000, 10),),), (80,)),
        Method("SGLD, tuned", tuple((stage,) for stage in sgld), (20, 40, 80)),
        Method("SGLD, other batches", tuple((stage,) for stage in shares), (20, 40, 80)),
        Method("SGLD, larger batches late", tuple((early, s) for s in late), (10, 20, 40, 80)),
    ]


def long_run(model: Model, on: Part, seed: int) -> float:
    """The error that the Gibbs sampler ends with."""
    draws = list(run(model, (Stage("gibbs", LONG, 2),), on, seed))
    return float(curves(draws, on, (20,))[0].errors[-1])


def chosen(model: Model, method: Method, goal: float) -> tuple[Stages, int]:
    """What takes the least time on the validation split."""
    on, best = part(is_tuning=True), (math.inf, math.inf, method.choices[0], method.firsts[0])
    for stages in method.choices:
        for curve in curves(list(run(model, stages, on, TUNING_SEED)), on, method.firsts):
            score = (curve.seconds_to(goal), float(curve.errors[-1]), stages, curve.first)
            best = min(best, score, key=lambda one: one[:2])
    return best[2:]


def compare(model: Model) -> list[Bar]:
    """Print a curve for each method as it is done; the times to the goal, and their ratio."""
    goal = long_run(model, part(is_tuning=True), TUNING_SEED) + GOAL
    test = part(is_tuning=False)
    truth = statistics.mean(long_run(model, test, 10 + seed) for seed in SEEDS[:2])
    print(f"{model.name}: {LONG} sweeps end at {truth:.4f}", flush=True)
    times = {}
    for method in methods():
        stages, first = chosen(model, method, goal)
        found = []
        for seed in SEEDS:
            draws = list(run(model, stages, test, seed))
            found += curves(draws, test, (first,))
        times[method.name] = statistics.median(one.seconds_to(truth + GOAL) for one in found)
        label = ", then ".join(stage.label for stage in stages)
        print(f"  {method.name} ({label}; mean from draw {first + 1})")
        print(f"    {shown(found)}", flush=True)
    bars = [
        Bar(f"{name}, to within {GOAL:g}, {model.name}", seconds, "s")
        for name, seconds in times.items()
    ]
    fastest = min((name for name in times if name.startswith("SGLD")), key=times.__getitem__)
    ratio = times[fastest] / times["Gibbs"]
    return [*bars, Bar(f"{fastest} / Gibbs, {model.name}", ratio, "×", 1)]


def shown(found: list[Curve]) -> str:
    """Mean seconds and errors over seeds, at some draws."""
    last = len(found[0].errors)
    places = np.unique(np.geomspace(1, last, 8).astype(int)) - 1
    seconds = np.mean([one.seconds for one in found], axis=0)
    errors = np.mean([one.errors for one in found], axis=0)
    return "  ".join(f"{seconds[k]:.2f} s {errors[k]:.4f}" for k in places)


def models() -> dict[str, Model]:
    spread = float(part(is_tuning=False).train.values.std()) / RANK**0.5
    return {
        "factorize": Model("factorize's model", True, 0.83, spread, 0.5),
        "paper": Model("the paper's model", False, 1.0, 1.0, 0.25),
    }


def against_gibbs(name: str = "") -> Iterator[Bar]:
    """Of one of the models, or of both; in JAX's default precision."""
    if data.cached("ml-1m") is None:
        remedy = "MovieLens 1M is not in the cache: levymc data import ml-1m --from ml-1m.zip"
        yield missing("SGLD / Gibbs", remedy)
        return
    with jax.enable_x64(False):
        for model in [models()[name]] if name else models().values():
            yield from compare(model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=("factorize", "paper"), default="")
    show(against_gibbs(parser.parse_args().model))


if __name__ == "__main__":
    main()
