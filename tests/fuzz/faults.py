"""Faults: what is put in the place of an argument of `levymc.sample` or of an algorithm.

All of them must be refused.
"""

import random
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tests.fuzz.setups import KINDS, Setup, batch, data

import levymc
from levymc import integrators, noises

BAD_OPTIONS: dict[str, list[Any]] = {
    "step_size": [
        *[0.0, -0.1, np.nan, np.inf, "0.1", None, 1j, np.full(2, 0.1), {"a": 0.1}],
        *[lambda n: -0.1, lambda n: jnp.ones(2), lambda n: None, lambda n: "0.1"],
        *[lambda: 0.1, lambda n: jnp.where(n > 4, jnp.nan, 0.1)],
    ],
    "alpha": [
        *[0.5, 1.0, 2.5, np.nan, np.inf, "1.5", None, 1j, [1.5, 0.2], np.full((7, 7), 1.5)],
        *[{"zz": 1.5}],
    ],
    "integrator": ["euler", integrators.euler, integrators.tamed, 1.0],
    "noise": ["isotropic", noises.isotropic, noises.truncated, 1.0],
    "preconditioner": [0.0, -1.0, np.nan, np.inf, "1", 1j, np.ones((7, 7)), {"zz": 1.0}],
    "scale": [0.0, -1.0, np.nan, np.inf, "1", None, 1j, np.ones((7, 7)), {"zz": 1.0}],
    "drift": ["exact", 1.0, lambda x: jnp.zeros(7), lambda x: None],
}
BAD_TARGETS: list[Any] = [
    None,
    "normal",
    lambda x: None,
    lambda x: jnp.ones(3),
    lambda x: (1.0, 2.0),
    lambda x: 1,
    lambda x: jnp.complex64(1),
    lambda x: "1",
    lambda x: jnp.nan * jnp.sum(jax.tree.leaves(x)[-1]),
]
BAD_ARGUMENTS: dict[str, list[Any]] = {
    "key": [0, None, "0", np.zeros(3), jax.random.split(jax.random.key(0), 2), np.zeros(5, "u4")],
    "initial_positions": [
        *[None, {}, (), "0", 1.0, np.float32(1), np.zeros(3, int), np.zeros(3, bool)],
        *[
            np.full(3, np.nan),
            np.full(3, np.inf),
            np.zeros(3, complex),
            np.zeros((0, 2)),
            np.zeros((2, 0)),
        ],
        *[{"a": np.zeros(3), "b": np.zeros(2)}, np.array(["a"]), [None], {"a": object()}],
        *[[[0.0, 1.0], [2.0]]],
    ],
    "num_steps": [0, -3, 2.5, "many", None, 2**70, np.ones(2)],
    "thin": [0, -1, 1.5, "2", None, 10**6, [], [0, 1], [3, 1], [1.5], [[1]], {1}, 2**70],
    "burn_in": [-1, 1.5, "1", None, 2**70],
    "observe": [["mean"], {"m": "mean"}, levymc.observe.mean, {"m": levymc.observe.mean}, 1],
    "observe_every": [0, -1, 1.5, "2", 10**6, []],
    "keep": ["all", 3, lambda x: "x", lambda x: None],
}
BAD_BATCHES: dict[bool, list[Any]] = {
    True: [None, 7, [], data(), "data", [batch(0), batch(0)[:2]], [None], lambda n: "x"],
    False: [data(), [batch(0)], 7, levymc.whole(data())],
}
BAD_ALGORITHMS: list[Any] = [None, levymc.fla, "fla", [], ["fla"], lambda key, state: state]


class Fault(NamedTuple):
    """A wrong value in the place of an argument."""

    argument: str
    value: Any

    def __str__(self) -> str:
        return f"{self.argument} = {self.value!r:.80}"


def draw_fault(random: random.Random, setup: Setup) -> Fault:
    kind = KINDS[setup.kind]
    wrong = {name: BAD_OPTIONS[name] for name in kind.options}
    if setup.kind.startswith("levy_walk"):  # which takes all of (0, 2]
        wrong["alpha"] = BAD_OPTIONS["alpha"][2:]
    if setup.kind == "flmc":
        wrong["drift"] = BAD_OPTIONS["drift"]
    if kind.knows_density and not kind.takes_data:
        wrong["target"] = BAD_TARGETS
    wrong |= BAD_ARGUMENTS
    wrong |= {"minibatches": BAD_BATCHES[kind.takes_data], "algorithm": BAD_ALGORITHMS}
    argument = random.choice(list(wrong))
    return Fault(argument, random.choice(wrong[argument]))
