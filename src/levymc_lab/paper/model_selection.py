r"""Future direction (iv): does the evidence choose the size of a model?

.. math:: \log Z = \int_0^1 E_β[\log L]\, dβ, \qquad β_i = (i/K)^5,

along power posteriors p L^β.  On ratings the Gibbs sampler draws each of them exactly, from two
starts: the rank L with the most evidence stands beside that with the least error on ratings that
were held out.  On a belief network the evidence integrates over all weights and sums over all
hidden units: that is in reach for few units, whose 2^J states can be added up, and small pictures,
from full gradients (MALA) and from minibatches (SGLD), each by chains that are cooled from the
prior and by chains from a good mode; and on pictures that a network of two units made, the evidence
should choose two.  For as many units as the paper has, it is out of reach: those are compared by
the annealed likelihood of pictures that were held out.

References: [simsekli2017], section 6; [friel2008], [xie2011].  Departures: the paper names the use
and measures nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from levymc_lab import data
from levymc_lab.framework import Cell, CellResult, Experiment, Tables

from . import _movielens as ml
from . import sbn_stepsize
from ._evidence_by_gibbs import of_rank
from ._evidence_by_gradients import FULL, MINIBATCH, of_regression, of_units
from ._model_selection_figures import figures
from ._model_selection_results import checks, tables_of, verdict

TRAINED = {"kind": "best", "alpha": 2.0, "step": 1e-4}  # SGLD as in `sbn-stepsize`
ADDED_UP = 12  # hidden units, all of whose states are added up for held-out pictures, too


@dataclass(frozen=True)
class Selection:
    """Sizes.

    set, ranks, rank_rungs: ratings, the L that are compared, and K.
    burn_in, num_sweeps: of each of two Gibbs chains for each β, before and after.
    predicting: sweeps whose mean predicts the ratings that were held out.
    source, units, num_rungs: "mnist", or "synthetic" pictures; the J that are added up, and K.
    num_pictures, num_chains, num_steps: of these, small ones; chains and their steps for each β.
    minibatch_units, minibatch_steps, batch_size: the J that are run from minibatches, too.
    cooling_chains, cooling_steps: that come from the prior to every β, and their steps; of these
        the path from the prior begins in `num_chains`, and that from a mode in the best.
    control_units, control_truth: the J for pictures that a network made, and its own.
    larger, num_train, num_test, num_iterations, num_temperatures, num_particles, num_seeds: the J
        that are compared by held-out pictures, and how.
    known_steps, known_chains: on a regression whose evidence is known.
    """

    set: str
    ranks: tuple[int, ...]
    rank_rungs: int
    burn_in: int
    num_sweeps: int
    predicting: int
    source: str
    units: tuple[int, ...]
    num_rungs: int
    num_pictures: int
    num_chains: int
    num_steps: int
    minibatch_units: tuple[int, ...]
    minibatch_steps: int
    batch_size: int
    cooling_chains: int
    cooling_steps: int
    control_units: tuple[int, ...]
    larger: tuple[int, ...]
    num_train: int
    num_test: int
    num_iterations: int
    num_temperatures: int
    num_particles: int
    num_seeds: int
    known_steps: int
    known_chains: int = 32
    control_truth: int = 2


def needs(config: Selection) -> None:
    """Refuse at once where data are missing."""
    ml.check_there(config.set)
    if config.source == "mnist":
        data.load("mnist")


def cells(config: Selection) -> list[Cell]:
    return [
        *(
            Cell(f"known-{way.split()[0]}", {"kind": "known", "way": way})
            for way in (FULL, MINIBATCH)
        ),
        *(Cell(f"rank-{rank}", {"kind": "rank", "size": rank}) for rank in config.ranks),
        *(_of_units("control", size, FULL) for size in config.control_units),
        *(_of_units("units", size, FULL) for size in config.units),
        *(_of_units("units", size, MINIBATCH) for size in config.minibatch_units),
        *(
            Cell(
                f"held-out-{size}-seed={seed}",
                {"kind": "held", "size": size, "seed": seed},
                stream=f"held-out-seed={seed}",
            )
            for size in config.larger
            for seed in range(config.num_seeds)
        ),
    ]


def _of_units(kind: str, size: int, way: str) -> Cell:
    """Both ways share their stream, and so the mode that one of their paths begins in."""
    given = {"kind": kind, "size": size, "way": way}
    return Cell(f"{kind}-{size}-{way.split()[0]}", given, stream=f"{kind}-{size}")


def run_cell(config: Selection, cell: Cell, key: Any) -> CellResult:
    run: Callable[..., CellResult] = {
        "known": of_regression,
        "rank": of_rank,
        "control": of_units,
        "units": of_units,
        "held": _held_out,
    }[cell["kind"]]
    return run(config, cell, key)


def _held_out(config: Selection, cell: Cell, key: Any) -> CellResult:
    """The log-likelihoods of held-out pictures, the same for all cells, after SGLD on others."""
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
    tests, is_exact = sbn_stepsize.split(sizes).test, cell["size"] <= ADDED_UP
    if is_exact:
        each = model.exact_loglikelihood(last, tests)
    else:
        shared, count = (sizes, model, key_test, last, tests), config.num_temperatures
        particles = config.num_particles
        found = sbn_stepsize.likelihood(*shared, count, num_particles=particles)
        each = found.loglikelihoods
    return {"loglikelihoods": np.asarray(each, np.float64), "is_exact": is_exact}


def summarise(config: Selection, results: Mapping[str, CellResult]) -> Tables:
    return tables_of(config, cells(config), results)


EXPERIMENT = Experiment(
    name="model-selection",
    title="The size of a model by its evidence",
    paper_item="Future direction (iv)",
    question="Does the evidence choose the rank and the hidden units that predict best?",
    profiles={
        "quick": Selection(
            set="small",
            ranks=(1, 3),
            rank_rungs=8,
            burn_in=10,
            num_sweeps=20,
            predicting=10,
            source="synthetic",
            units=(2,),
            num_rungs=8,
            num_pictures=60,
            num_chains=4,
            num_steps=100,
            minibatch_units=(2,),
            minibatch_steps=100,
            batch_size=20,
            cooling_chains=4,
            cooling_steps=80,
            control_units=(2,),
            larger=(4,),
            num_train=300,
            num_test=20,
            num_iterations=20,
            num_temperatures=20,
            num_particles=2,
            num_seeds=2,
            known_steps=200,
        ),
        "paper": Selection(
            set="ml-1m",
            ranks=(2, 3, 4, 5, 7, 10, 15),
            rank_rungs=40,
            burn_in=50,
            num_sweeps=50,
            predicting=100,
            source="mnist",
            units=(1, 2, 3, 4, 5, 6),
            num_rungs=20,
            num_pictures=300,
            num_chains=4,
            num_steps=15_000,
            minibatch_units=(1, 2, 3),
            minibatch_steps=15_000,
            batch_size=100,
            cooling_chains=16,
            cooling_steps=20_000,
            control_units=(1, 2, 3, 4),
            larger=(10, 25, 50, 100),
            num_train=60_000,
            num_test=500,
            num_iterations=2000,
            num_temperatures=500,
            num_particles=10,
            num_seeds=2,
            known_steps=1000,
        ),
    },
    captions={
        "model-selection": "Log evidence below the most, with its standard error and what may be "
        "systematic (linear near zero, then logarithmic; the dotted line is the choice). Top left: "
        "of each rank of the factorisation, and the error on held-out ratings. Top right: of each "
        "number of hidden units, for pictures of 7 × 7 pixels that a network made. Bottom left: "
        "for such pictures of digits. Bottom right: log-likelihood of held-out pictures of full "
        "size, where the evidence is out of reach, behind the best, with the error of that."
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
