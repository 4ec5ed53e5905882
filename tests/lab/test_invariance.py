"""The residual of the fractional Fokker–Planck equation, against other ways to compute it."""

import numpy as np
import pytest
from tests.lab.sinc_matrices import fractional_laplacian

from levymc import drifts
from levymc_lab.paper import _double_well as well
from levymc_lab.paper import invariance

ALPHA = 1.7
CONFIG = invariance.Invariance(alphas=(ALPHA,))


@pytest.fixture(scope="module")
def tables():
    (cell,) = invariance.cells(CONFIG)
    return invariance.summarise(CONFIG, {cell.id: invariance.run_cell(CONFIG, cell, None)})


def test_the_target_is_stationary_under_the_exact_drift_only(tables):
    largest = {row["drift"]: row["largest"] for row in tables["residuals"].rows()}
    assert largest[invariance.EXACT] < 1e-8
    assert 1e-3 < largest[invariance.PAPER] < largest[invariance.SHORT]
    assert largest[invariance.SHORT] < largest[invariance.LEADING]
    assert largest[invariance.LEADING] == pytest.approx(0.653, abs=0.001)
    checks = invariance.checks(CONFIG, tables)
    assert [check.outcome for check in checks] == ["pass"] * 3
    assert invariance.verdict(CONFIG, tables, checks).kind == "reproduced"
    assert invariance.figures(CONFIG, tables).keys() == invariance.EXPERIMENT.captions.keys()


def test_the_jumps_are_those_of_another_discretisation(tables):
    part = tables["balance"].where(drift=invariance.EXACT)
    matrix = fractional_laplacian(part["x"], ALPHA)
    np.testing.assert_allclose(part["jumps"], matrix @ well.density(part["x"]), atol=1e-7)


def test_a_drift_that_is_off_by_a_thousandth_is_found(tables):
    exact = drifts.quadrature(well.target, ALPHA)
    off = drifts.as_drift(lambda x: _longer(exact.signed_log(x)))
    jumps = tables["balance"].where(drift=invariance.EXACT)["jumps"]
    residual = np.abs(jumps + invariance.drift_term(off)).max() / np.abs(jumps).max()
    assert residual == pytest.approx(1e-3, rel=1e-3)


def _longer(signed):
    return signed._replace(log_size=signed.log_size + np.log(1.001))
