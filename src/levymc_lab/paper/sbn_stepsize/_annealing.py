"""How far annealed importance sampling can be trusted, for the experiment `sbn_stepsize`."""

from typing import Any

import jax
import numpy as np

from levymc import models
from levymc_lab.framework import CellResult

from . import _data
from ._train import chain, network

PARTICLES = 10  # an image, for the network whose likelihood is known
DOES = {"kind": "sgfla", "alpha": 2.0}


def anneal(config: Any, key: Any) -> CellResult:
    """On test images with the weight first and last; on simulated ones from below and above.

    Then a network so small that the likelihood can be added up.
    """
    key_chain, key_simulate, key_test, key_small = jax.random.split(key, 4)
    model = network(config.num_hidden, config.sweeps)
    position = _trained(config, model, key_chain)
    images, hidden = model.simulate(key_simulate, position, config.num_annealed)
    tests = _data.of(config).test[: config.num_annealed]
    found = [
        {
            "first": _mean(config, model, key_test, position, tests, count),
            "last": _mean(config, model, key_test, position, tests, count, weight_last=True),
            "below": _mean(config, model, key_test, position, images, count),
            "above": _mean(config, model, key_test, position, images, count, reverse_from=hidden),
        }
        for count in config.temperatures
    ]
    columns = {name: np.array([row[name] for row in found]) for name in found[0]}
    return {**columns, **_small(config, key_small)}


def _trained(config: Any, model: Any, key: Any) -> Any:
    settings = {**DOES, "step": config.steps[0], "length": config.short_iterations}
    return chain(config, settings, model, key).positions[-1]


def _mean(*arguments: Any, **how: Any) -> float:
    return _annealed(*arguments, **how).mean


def _annealed(
    config: Any, model: Any, key: Any, position: Any, images: Any, count: int, **how: Any
) -> models.Annealed:
    rates = models.pixel_rates(_data.of(config).train)
    return models.annealed_loglikelihood(
        model, key, position, images, base_rate=rates, num_temperatures=count, **how
    )


def _small(config: Any, key: Any) -> dict[str, float]:
    """Few units that each explain much: chains of one image end in different modes."""
    key_chain, key_test = jax.random.split(key)
    model = network(config.small_hidden, config.sweeps)
    position = _trained(config, model, key_chain)
    tests = _data.of(config).test[: config.num_annealed]
    estimate = _annealed(
        config, model, key_test, position, tests, config.num_temperatures, num_particles=PARTICLES
    )
    return {
        "small_exact": float(np.mean(model.exact_loglikelihood(position, tests))),
        "small_one": float(np.mean(estimate.log_weights)),
        "small_annealed": estimate.mean,
    }
