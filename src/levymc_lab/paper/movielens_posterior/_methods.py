r"""The methods of the experiment `movielens_posterior`, their tuning and their scores."""

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import jax
import numpy as np

from levymc import models, stable
from levymc.riesz import leading_coefficient
from levymc_lab.framework import CellResult

from .. import _movielens as ml

LEVEL = 1.6449  # standard deviations of a 90 % interval
BOUND = 50.0
START_SCALE = 0.1
SWEEPS_OF_BURN_IN = 20


class Method(NamedTuple):
    """A way to predict ratings.

    kind: "gibbs", "als" or "sg".
    bound: of truncated noise, if any.
    has_rows: with the preconditioner.
    cold_as: an α; noise as cold as that of SG-FLA with that α and truncated noise.
    """

    id: str
    name: str
    kind: str = "sg"
    alpha: float = 2.0
    bound: float | None = None
    has_rows: bool = True
    cold_as: float | None = None


METHODS = (
    Method("gibbs", "Gibbs", "gibbs"),
    Method("als", "ALS", "als"),
    Method("sgld", "SGLD"),
    Method("sgld-plain", "SGLD, one step for all rows", has_rows=False),
    Method("sgfla-1.9", "SG-FLA 1.9", alpha=1.9),
    Method("sgfla-1.8", "SG-FLA 1.8", alpha=1.8),
    Method("sgfla-1.6", "SG-FLA 1.6", alpha=1.6),
    Method("sgfla-1.8-plain", "SG-FLA 1.8, one step for all rows", alpha=1.8, has_rows=False),
    Method("cut-1.8", "SG-FLA 1.8, jumps ≤ 50", alpha=1.8, bound=BOUND),
    Method("cut-1.6", "SG-FLA 1.6, jumps ≤ 50", alpha=1.6, bound=BOUND),
    Method("cut-1.4", "SG-FLA 1.4, jumps ≤ 50", alpha=1.4, bound=BOUND),
    Method("cold", "SGLD, as cold as 1.6, jumps ≤ 50", cold_as=1.6),
)
BY_ID = {method.id: method for method in METHODS}


class Setting(NamedTuple):
    """What is chosen on the validation split."""

    step_size: float
    offset: float


def settings(config: Any, method: Method) -> list[Setting]:
    if method.kind != "sg":
        return [Setting(math.nan, math.nan)]
    if not method.has_rows:
        return [Setting(eta, math.nan) for eta in config.plain_steps]
    return [Setting(*pair) for pair in product(config.step_sizes, config.offsets)]


def report(config: Any, id: str, key: Any) -> CellResult:
    method = BY_ID[id]
    key_tune, key_report = jax.random.split(key)
    choices = settings(config, method)
    chosen = choices[0] if len(choices) == 1 else _best(config, method, choices, key_tune)
    part = ml.part(config.set, is_tuning=False)
    chain = ml.Watched(sampler(config, method, chosen, part))
    length = config.num_steps if method.kind == "sg" else config.num_sweeps
    runs = [
        _score(config, method, chain, part, seed, k, length)
        for seed, k in enumerate(jax.random.split(key_report, config.num_seeds))
    ]
    found = {name: np.stack([run[name] for run in runs]) for name in runs[0]}
    cold = temperature(method, chosen, config, part)
    named = {**chosen._asdict(), "temperature": cold, "source": part.source}
    return {**found, **named}


def _best(config: Any, method: Method, choices: list[Setting], key: Any) -> Setting:
    part = ml.part(config.set, is_tuning=True)
    scores = []
    for choice in choices:
        chain = ml.Watched(sampler(config, method, choice, part))
        run = _score(config, method, chain, part, 0, key, config.tuning_steps)
        scores.append(run["errors"][-1])
    return choices[int(np.nanargmin(scores))]


def sampler(config: Any, method: Method, chosen: Setting, part: ml.Part) -> Any:
    train, center = part.train, part.center
    if method.kind != "sg":
        spread = 1.0 if method.kind == "gibbs" else 0.0
        ratings = train.users, train.items, train.values
        return models.gibbs_factorization(
            *ratings, *part.counts, rank=ml.RANK, center=center, spread=spread
        )
    rows = ml.row_steps(part, config.s2, chosen.offset) if method.has_rows else None
    model = ml.fast(
        part,
        batch_size=ml.batch_size(part),
        step_size=chosen.step_size,
        alpha=method.alpha,
        center=center,
        preconditioner=rows,
        curvature=True,
        truncation=method.bound,
    )
    cold = temperature(method, chosen, config, part)
    if method.cold_as is not None:
        quantiles = math.sqrt(cold) * model.data.quantiles
        model = model._replace(data=model.data._replace(quantiles=quantiles))
    return model


def temperature(method: Method, chosen: Setting, config: Any, part: ml.Part) -> float:
    r"""T = v (η m)^{2/α - 1} / (2 c_α), m the median row's; 1 for SGLD, without end for jumps."""
    alpha = method.cold_as or method.alpha
    if method.kind != "sg":
        return 1.0 if method.kind == "gibbs" else 0.0
    if alpha == 2:
        return 1.0
    if method.bound is None and method.cold_as is None:
        return math.inf
    rows = ml.row_steps(part, config.s2, chosen.offset)
    step = chosen.step_size * float(np.median(np.concatenate(list(rows.values()))))
    coefficient = float(leading_coefficient(alpha - 2))
    return truncated_variance(alpha) * step ** (2 / alpha - 1) / (2 * coefficient)


@lru_cache
def truncated_variance(alpha: float) -> float:
    """E ξ² of SαS(1) given |ξ| ≤ BOUND, over the quantiles of equal shares."""
    inside = 1 - 2 * float(stable.sf(BOUND, alpha))
    levels = 0.5 + inside * ((np.arange(20_000) + 0.5) / 20_000 - 0.5)
    return float(np.mean(np.asarray(stable.ppf(levels, alpha), np.float64) ** 2))


def _score(
    config: Any, method: Method, chain: ml.Watched, part: ml.Part, seed: int, key: Any, length: int
) -> dict[str, Any]:
    """Errors of the running mean and the time, at every mark; coverage and one draw at the end."""
    predict = ml.predictor(part, part.center)
    every, burn_in = (
        (config.every, config.burn_in) if method.kind == "sg" else (1, _burn_in(method))
    )
    marks = np.arange(every, length + 1, every)
    mean, square, count = np.zeros(part.test.num_ratings), np.zeros(part.test.num_ratings), 0
    errors, seconds = [], []
    for visit in chain.chain(ml.start(part, seed, START_SCALE), key, marks):
        drawn = predict(visit.position).astype(np.float64)
        if visit.steps > burn_in or count == 0:
            # Until the burn-in is over, the last draw stands for the mean.
            count = count + 1 if visit.steps > burn_in else 0
            weight = 1 / max(count, 1)
            mean, square = mean + weight * (drawn - mean), square + weight * (drawn**2 - square)
        errors.append(ml.rmse(mean if count else drawn, part))
        seconds.append(visit.seconds)
    deviation = np.sqrt(1.0 + np.maximum(square - mean**2, 0.0))
    inside = np.abs(part.test.values - mean) <= LEVEL * deviation
    keep = list(_thinned(len(errors)))
    return {
        "errors": np.array(errors)[keep],
        "seconds": np.array(seconds)[keep],
        "single": ml.rmse(drawn, part),
        "coverage": inside.mean(),
        "divergences": visit.divergences,
    }


def _burn_in(method: Method) -> int:
    """ALS has a mode to end in, not a law to average over: its last draw is what it predicts."""
    return SWEEPS_OF_BURN_IN if method.kind == "gibbs" else 10**9


def _thinned(count: int) -> Iterator[int]:
    """At most a hundred places, closer at the beginning, with the last."""
    yield from np.unique(np.round(np.geomspace(1, count, 100)).astype(int) - 1).tolist()
