"""The experiments by name, in the order of the paper."""

from importlib import import_module

from ._experiment import Experiment, nearest

# A module is imported when its experiment is asked for; it holds it as EXPERIMENT.
MODULES = {
    "stable-laws": "levymc_lab.experiments.stable_laws",
    "invariance": "levymc_lab.experiments.invariance",
    "weak-convergence": "levymc_lab.experiments.weak_convergence",
    "double-well-histograms": "levymc_lab.experiments.double_well_histograms",
    "double-well-truncation": "levymc_lab.experiments.double_well_truncation",
    "drift-accuracy": "levymc_lab.experiments.drift_accuracy",
    "double-well-bias": "levymc_lab.experiments.double_well_bias",
    "movielens-convergence": "levymc_lab.experiments.movielens_convergence",
    "movielens-posterior": "levymc_lab.experiments.movielens_posterior",
    "movielens-stability": "levymc_lab.experiments.movielens_stability",
    "sbn-stepsize": "levymc_lab.experiments.sbn_stepsize",
}


def names() -> list[str]:
    """The names of all experiments.

    >>> import levymc_lab.experiments
    >>> "stable-laws" in levymc_lab.experiments.names()
    True
    """
    return list(MODULES)


def get(name: str) -> Experiment:
    """The experiment of that name.

    Raises:
        ValueError: there is none; the message names the nearest.

    Examples:
        >>> import levymc_lab.experiments
        >>> levymc_lab.experiments.get("stable-laws").paper_item
        'Figure 1'
    """
    if name not in MODULES:
        raise ValueError(f"Experiments: {nearest(name, MODULES)}")
    return import_module(MODULES[name]).EXPERIMENT
