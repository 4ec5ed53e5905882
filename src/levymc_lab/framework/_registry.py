"""The experiments by name: those of the paper in its order, then ours."""

import re
from importlib import import_module

from ._experiment import Experiment, nearest

# A module is imported when its experiment is asked for; it holds it as EXPERIMENT.
MODULES = {
    "stable-laws": "levymc_lab.paper.stable_laws",
    "invariance": "levymc_lab.paper.invariance",
    "weak-convergence": "levymc_lab.paper.weak_convergence",
    "euler-convergence": "levymc_lab.paper.euler_convergence",
    "multidimensional-drift": "levymc_lab.paper.multidimensional_drift",
    "double-well-histograms": "levymc_lab.paper.double_well_histograms",
    "double-well-truncation": "levymc_lab.paper.double_well_truncation",
    "drift-accuracy": "levymc_lab.paper.drift_accuracy",
    "double-well-bias": "levymc_lab.paper.double_well_bias",
    "movielens-convergence": "levymc_lab.paper.movielens_convergence",
    "movielens-posterior": "levymc_lab.paper.movielens_posterior",
    "movielens-stability": "levymc_lab.paper.movielens_stability",
    "sbn-stepsize": "levymc_lab.paper.sbn_stepsize",
    "minibatch-size": "levymc_lab.paper.minibatch_size",
    "annealing": "levymc_lab.paper.annealing",
    "model-selection": "levymc_lab.paper.model_selection",
    "stable-like": "levymc_lab.paper.stable_like",
    "local-geometry": "levymc_lab.paper.local_geometry",
    "contest": "levymc_lab.contest.experiment",
    "contest-large": "levymc_lab.contest.large",
    "contest-seconds": "levymc_lab.contest.seconds",
}


def names() -> list[str]:
    """The names of all experiments.

    >>> import levymc_lab.framework
    >>> "stable-laws" in levymc_lab.framework.names()
    True
    """
    return list(MODULES)


def get(name: str) -> Experiment:
    """The experiment of that name.

    Raises:
        ValueError: there is none; the message names the nearest, or those of a figure.

    Examples:
        >>> import levymc_lab.framework
        >>> levymc_lab.framework.get("stable-laws").paper_item
        'Figure 1'
    """
    if name not in MODULES:
        if found := _of_item(name):
            advice = f"Use the experiment's name: {' or '.join(found)}."
            raise ValueError(f"Experiments: there is no {name!r}. {advice}")
        raise ValueError(f"Experiments: {nearest(name, MODULES)}")
    return _load(name)


def _load(name: str) -> Experiment:
    return import_module(MODULES[name]).EXPERIMENT


def _of_item(text: str) -> list[str]:
    """The experiments of an item of the paper, such as "figure-2", "Fig. 2" or "fig2"."""
    item = re.fullmatch(r"([a-z]+)[^a-z0-9]*(\d+)", text.lower())
    if not item:
        return []
    word, number = item.groups()
    return [
        name
        for name in MODULES
        if (of := re.match(r"(\w+) (\d+)", _load(name).paper_item.lower()))
        and of[2] == number
        and len(word) > 2
        and of[1].startswith(word)
    ]
