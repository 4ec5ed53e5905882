"""Table 1: κ̂, what it hides, and r of Corollary 2."""

import dataclasses

import numpy as np
import pytest

from levymc.riesz import coefficients
from levymc_lab import framework as experiments

EXPERIMENT = experiments.get("drift-accuracy")
CONFIG = dataclasses.replace(EXPERIMENT.config("quick"), num_shown=40, alphas=(1.8,))


@pytest.fixture(scope="module")
def tables():
    cells = EXPERIMENT.checked_cells(CONFIG)
    return EXPERIMENT.summarise(
        CONFIG, {cell.id: EXPERIMENT.run_cell(CONFIG, cell, cell.key(0)) for cell in cells}
    )


def test_the_table_comes_out(tables):
    checks = EXPERIMENT.checks(CONFIG, tables)
    outcomes = {check.name: check.outcome for check in checks}
    assert outcomes["κ̂(1.8) on 201 points"] == "pass"
    assert outcomes["κ̂(1.8) on the 200 points of the text"] == "explained"
    assert EXPERIMENT.verdict(CONFIG, tables, checks).kind == "reproduced"


def test_the_leading_term_is_off_by_its_own_size(tables):
    assert tables["kappa"]["leading_median"].min() > 0.8
    assert tables["kappa"]["truncated_90"].max() < 2e-3


def test_the_radius_is_the_one_of_corollary_2(tables):
    """|Σ_{k≠0} g_k f(x-kh)/(g_0 f(x)) + 1|^{1/γ}, summed as it is written there."""
    row = tables["drifts"].where(alpha=1.8).rows()[13]
    k = np.arange(-170, 171)
    weights = np.asarray(coefficients(-0.2, 170))[np.abs(k)]

    def f(x):
        slope = -(4 * x**3 - 0.06 * x**2 - 52.04 * x + 0.5) / 10
        return slope * np.exp(-(x + 5) * (x + 1) * (x - 1.02) * (x - 5) / 10)

    ratios = weights * f(row["x"] - 0.06 * k) / (weights[170] * f(row["x"]))
    assert row["radius"] == pytest.approx(abs(ratios[k != 0].sum() + 1) ** (1 / -0.2), rel=1e-6)


def test_the_figure_is_drawn(tables):
    assert EXPERIMENT.figures(CONFIG, tables).keys() == EXPERIMENT.captions.keys()
