"""The chains of the experiment `movielens_convergence`."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from levymc import schedules, stable
from levymc.riesz import leading_coefficient
from levymc_lab.framework import Cell, CellResult

from .. import _movielens as ml
from .._published import published

POWER = 0.51
BOUND = 50.0  # of truncated noise
NUM_MARKS = 50
TUNING_SCALE = 0.1  # of the start where a is tuned


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


def variants_of(alpha: float) -> tuple[Variant, ...]:
    """Those that differ at this α: at 2 all are SGLD, but for that without noise."""
    return VARIANTS if alpha < 2 else (VARIANTS[0], BY_ID["sgd"])


def marks(length: int) -> np.ndarray:
    """Iterations at which the error is measured: dense at first."""
    spaced = np.geomspace(1, length, NUM_MARKS // 2), np.linspace(1, length, NUM_MARKS // 2)
    return np.unique(np.round(np.concatenate(spaced)).astype(int))


def sampler(part: ml.Part, variant: Variant, alpha: float, a: float) -> ml.Watched:
    """The variant at that α; the drift's step is bounded by the row's curvature."""
    scale = float(leading_coefficient(alpha - 2)) if variant.alpha_two else 1.0
    steps = schedules.polynomial(a * scale ** (1 / POWER), POWER)
    model = ml.fast(
        part,
        batch_size=ml.batch_size(part),
        step_size=steps,
        alpha=2.0 if variant.alpha_two else alpha,
        curvature=True,
        truncation=BOUND if variant.law == "truncated" else None,
    )
    if variant.law == "normal":
        normal = jnp.asarray(stable.quantile_table(2.0))
        model = model._replace(data=model.data._replace(quantiles=normal))
    if variant.law == "none":
        model = model._replace(data=model.data._replace(quantiles=0 * model.data.quantiles))
    return ml.Watched(model)


def errors(part: ml.Part, chain: ml.Watched, position: Any, key: Any, at: np.ndarray) -> np.ndarray:
    predict = ml.predictor(part, 0.0)
    return np.array([ml.rmse(predict(v.position), part) for v in chain.chain(position, key, at)])


def positive_start(part: ml.Part, seed: int, scale: float, mean: float) -> Any:
    """Factors about a positive mean: predictions then begin at rank · mean²."""
    return {k: v + np.float32(mean) for k, v in ml.start(part, seed, scale).items()}


def mean_for(part: ml.Part, error: float) -> float:
    """The mean of factors at which predictions begin with that error."""
    spread = float(part.test.values.var())
    return math.sqrt(max(part.center - math.sqrt(max(error**2 - spread, 0.0)), 0.0) / ml.RANK)


def published_curve(name: str, alpha: float, at: np.ndarray) -> np.ndarray:
    """The published error at these iterations; for made ratings a curve of that kind."""
    figure = {"ml-1m": "fig5_ml1m"}.get(name)
    if figure is None:
        return 3.0 - np.log(at) / np.log(at[-1])
    table = published(figure).where(alpha=alpha)
    return np.interp(at, table["x"], table["y"])


def fit(config: Any, cell: Cell, key: Any) -> CellResult:
    """The start and a that come nearest to the published curve; and SGLD from the same start."""
    part, alpha, at = ml.part(cell["set"], is_tuning=False), cell["alpha"], marks(cell["length"])
    wanted = published_curve(cell["set"], alpha, at)
    mean = mean_for(part, wanted[0])
    best: tuple[float, float, float, np.ndarray] | None = None
    for a in config.fit_a:
        chain = sampler(part, VARIANTS[0], alpha, a)
        for scale in config.fit_scales:
            found = errors(part, chain, positive_start(part, 0, scale, mean), key, at)
            distance = float(np.abs(found - wanted).mean())
            if best is None or distance < best[0]:
                best = distance, a, scale, found
    assert best is not None
    distance, a, scale, curve = best
    gaussian = sampler(part, BY_ID["sgld"], alpha, a)
    beside = errors(part, gaussian, positive_start(part, 0, scale, mean), key, at)
    return {
        "steps": at, "published": wanted, "measured": curve, "sgld": beside,
        "a": a, "scale": scale, "mean": mean, "distance": distance,
    }  # fmt: skip


def ablate(config: Any, cell: Cell, key: Any) -> CellResult:
    """All variants from one start with one a: the SGLD curve's, where α plays no part."""
    part, at = ml.part(cell["set"], is_tuning=False), marks(cell["length"])
    mean = mean_for(part, published_curve(cell["set"], 2.0, at)[0])
    a = config.fit_a[len(config.fit_a) // 2]
    found = {"steps": at, "a": a, "mean": mean}
    for variant in variants_of(cell["alpha"]):
        chain = sampler(part, variant, cell["alpha"], a)
        runs = [
            errors(part, chain, positive_start(part, seed, config.fit_scales[0], mean), k, at)
            for seed, k in enumerate(jax.random.split(key, config.num_seeds))
        ]
        found[variant.id] = np.stack(runs)
    return found


def tune(config: Any, cell: Cell, key: Any) -> CellResult:
    """The a with the least error at the end on the validation split; then the test split."""
    variant, alpha, at = BY_ID[cell["variant"]], cell["alpha"], marks(cell["length"])
    key_tune, key_report = jax.random.split(key)
    choices = config.tuned_a if cell["set"] == config.first else config.large_a
    scores = [
        _last_error(cell["set"], variant, alpha, a, cell["length"], key_tune) for a in choices
    ]
    a = choices[int(np.argmin(scores))]
    part = ml.part(cell["set"], is_tuning=False)
    chain = sampler(part, variant, alpha, a)
    count = config.num_seeds if cell["set"] == config.first else 1
    runs = [
        errors(part, chain, ml.start(part, seed, TUNING_SCALE), k, at)
        for seed, k in enumerate(jax.random.split(key_report, count))
    ]
    return {
        "steps": at, "measured": np.stack(runs), "a": a, "tried": np.array(choices),
        "validation": np.array(scores), "source": part.source,
    }  # fmt: skip


def _last_error(
    name: str, variant: Variant, alpha: float, a: float, length: int, key: Any
) -> float:
    part = ml.part(name, is_tuning=True)
    chain = sampler(part, variant, alpha, a)
    position = ml.start(part, 0, TUNING_SCALE)
    return float(errors(part, chain, position, key, np.array([length]))[-1])
