"""The experiments by name, in the order of the paper."""

from importlib import import_module

from ._experiment import Experiment, nearest

# A module is imported when its experiment is asked for; it holds it as EXPERIMENT.
MODULES = {
    "stable-laws": "levymc.experiments.stable_laws",
    "invariance": "levymc.experiments.invariance",
    "weak-convergence": "levymc.experiments.weak_convergence",
    "double-well-histograms": "levymc.experiments.double_well_histograms",
    "double-well-truncation": "levymc.experiments.double_well_truncation",
    "drift-accuracy": "levymc.experiments.drift_accuracy",
    "double-well-bias": "levymc.experiments.double_well_bias",
    "movielens-convergence": "levymc.experiments.movielens_convergence",
    "movielens-posterior": "levymc.experiments.movielens_posterior",
    "movielens-stability": "levymc.experiments.movielens_stability",
    "sbn-stepsize": "levymc.experiments.sbn_stepsize",
}


def names() -> list[str]:
    """The names of all experiments.

    >>> import levymc.experiments
    >>> "stable-laws" in levymc.experiments.names()
    True
    """
    return list(MODULES)


def get(name: str) -> Experiment:
    """The experiment of that name.

    Raises:
        ValueError: there is none; the message names the nearest.

    Examples:
        >>> import levymc.experiments
        >>> levymc.experiments.get("stable-laws").paper_item
        'Figure 1'
    """
    if name not in MODULES:
        raise ValueError(f"Experiments: {nearest(name, MODULES)}")
    return import_module(MODULES[name]).EXPERIMENT
