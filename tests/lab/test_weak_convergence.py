"""The weighted estimator's experiment: its bookkeeping, and its slopes on errors that are known."""

import jax
import numpy as np
import pytest

from levymc_lab.paper import _double_well as well
from levymc_lab.paper import weak_convergence as experiment
from levymc_lab.paper.weak_convergence import WeakConvergence

CONFIG = WeakConvergence(num_repeats=40, last=14)


def power_law(slopes):
    """Errors of ± a power of N, whose root mean square is that power."""
    exact = np.array(list(experiment.exact().values()))
    sign = np.where(np.arange(CONFIG.num_repeats) % 2, 1, -1)
    found = {}
    for i, name in enumerate(experiment.NAMES):
        powers = np.stack([CONFIG.lengths ** slopes(name, g) for g in experiment.FUNCTIONS], axis=1)
        errors = 0.4 * powers[:, :, None] * sign
        found[f"steps-{i}"] = {
            "estimates": exact[:, None] + errors,
            "time": np.full(CONFIG.lengths.size, 1e4),
        }
    return experiment.summarise(CONFIG, found)


def expected(name, function):
    return 0.1 if function == experiment.POSITION else experiment.theory(name, function)


def test_the_targets_of_the_estimates_are_the_well_s_own():
    exact = experiment.exact()
    assert exact[experiment.LEFT] == pytest.approx(well.LEFT_MASS, abs=1e-4)
    assert exact[experiment.POSITION] == pytest.approx(well.MEAN, abs=1e-4)


def test_estimates_weigh_by_the_steps_and_do_not_depend_on_where_they_are_looked_at():
    key, steps = jax.random.key(0), "b = 1/3"
    often = experiment.estimates(steps, np.array([1, 8, 16]), 4, key)
    once = experiment.estimates(steps, np.array([16]), 4, key)
    np.testing.assert_allclose(often["estimates"][-1], once["estimates"][-1], rtol=1e-12)
    a, b = experiment.SCHEDULES[steps]
    total = np.cumsum((a / np.arange(1, 17)) ** b)
    np.testing.assert_allclose(often["time"], total[[0, 7, 15]], rtol=1e-6)
    first = often["estimates"][0]  # of one step: the functions of one position
    places = list(experiment.FUNCTIONS)
    np.testing.assert_allclose(
        first[places.index(experiment.LOCAL)],
        np.cos(first[places.index(experiment.POSITION)]),
        atol=1e-5,
    )


def test_slopes_are_found_and_pass():
    tables = power_law(expected)
    for row in tables["slopes"].rows():
        assert row["slope"] == pytest.approx(expected(row["steps"], row["function"]), abs=1e-9)
    checks = experiment.checks(CONFIG, tables)
    assert [check.outcome for check in checks] == ["pass"] * 7
    verdict = experiment.verdict(CONFIG, tables, checks)
    assert verdict.kind == "reproduced"
    assert "-0.33 (-0.33) for b = 1/3" in verdict.words
    assert experiment.figures(CONFIG, tables).keys() == experiment.EXPERIMENT.captions.keys()


def test_errors_that_do_not_fall_fail():
    tables = power_law(lambda name, function: 0.0)
    checks = experiment.checks(CONFIG, tables)
    assert {check.outcome for check in checks if "constant" not in check.name} == {"fail"}
    assert experiment.verdict(CONFIG, tables, checks).kind == "not reproduced"


@pytest.mark.parametrize(
    ("name", "function", "slope"),
    [
        ("b = 0.2", experiment.LOCAL, -0.2),
        ("b = 0.6", experiment.LOCAL, -0.4),
        ("b = 0.6", experiment.LEFT, -0.2),
        (experiment.CONSTANT, experiment.LOCAL, 0.0),
        (experiment.CONSTANT, experiment.LEFT, -0.5),
    ],
)
def test_theory(name, function, slope):
    assert experiment.theory(name, function) == pytest.approx(slope)
