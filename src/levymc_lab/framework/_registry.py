"""The experiments by name: those of the paper in its order, then ours."""

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
        ValueError: there is none; the message names the nearest.

    Examples:
        >>> import levymc_lab.framework
        >>> levymc_lab.framework.get("stable-laws").paper_item
        'Figure 1'
    """
    if name not in MODULES:
        raise ValueError(f"Experiments: {nearest(name, MODULES)}")
    return import_module(MODULES[name]).EXPERIMENT
