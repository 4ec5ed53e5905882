"""The drift in several dimensions: its targets, its chains, and checks that can fail."""

import numpy as np
import pytest

from levymc_lab.paper import multidimensional_drift as experiment
from levymc_lab.paper.multidimensional_drift import EXACT, GAUSSIAN, LEADING, MIXTURE

CONFIG = experiment.MultidimensionalDrift(
    num_chains=(300, 300), time=0.2, step_size=0.1, timed_chains=4, timed_dimensions=(2, 4)
)


@pytest.mark.parametrize("name", [GAUSSIAN, MIXTURE])
@pytest.mark.parametrize("dimension", [2, 10])
def test_draws_follow_their_law_and_others_are_told(name, dimension):
    """False-alarm rate 1e-6 by Dvoretzky–Kiefer–Wolfowitz; sees 0.07 of a distribution function."""
    of = experiment.law(name, dimension)
    draws = of.draws(np.random.default_rng(0), 4000)
    limit = experiment.bound({"directions": len(of.directions), "chains": 4000})
    assert experiment._distances(of, draws).max() < limit
    assert experiment._distances(of, 1.3 * draws).max() > limit


def results(exact, leading, seconds):
    found = {}
    for cell in experiment.cells(CONFIG)[:-1]:
        distance = exact if cell["sampler"] == EXACT else leading
        row = experiment._row(
            CONFIG,
            cell,
            {
                "distances": np.array([0.0]),
                "distances_at_start": np.array([0.0]),
                "right_mode": 0.0,
                "moved": 0.0,
            },
        )
        found[cell.id] = {
            "distances": np.full(row["directions"], distance),
            "distances_at_start": np.full(row["directions"], 0.02),
            "right_mode": row["right_mode_exact"] + distance,
            "moved": 0.1,
        }
    dimensions = np.array(CONFIG.timed_dimensions)
    found["cost"] = {"evaluations": 49 * dimensions, "seconds": 1e-6 * dimensions**seconds}
    return experiment.summarise(CONFIG, found)


def judged(tables):
    checks = experiment.checks(CONFIG, tables)
    return [check.outcome for check in checks], experiment.verdict(CONFIG, tables, checks)


def test_the_right_law_passes_and_another_fails():
    tables = results(0.03, 0.4, seconds=2.0)
    outcomes, verdict = judged(tables)
    assert outcomes == ["pass"] * 8
    assert verdict.kind == "measured here"
    assert "beyond the bound on 4 of 4 targets" in verdict.words
    assert "power of 2.0 up to D = 4" in verdict.words
    assert experiment.figures(CONFIG, tables).keys() == experiment.EXPERIMENT.captions.keys()
    outcomes, verdict = judged(results(0.3, 0.4, seconds=3.5))
    assert outcomes == ["fail"] * 6 + ["pass", "explained"]
    assert verdict.kind == "not reproduced"


@pytest.mark.nightly
def test_chains_and_cost_of_two_dimensions():
    for cell in experiment.cells(CONFIG):
        if cell.id == "cost":
            found = experiment.run_cell(CONFIG, cell, cell.key(0))
            np.testing.assert_array_equal(found["evaluations"], [98, 196])
            assert np.all(found["seconds"] > 0)
        elif cell["dimension"] == 2 and cell["sampler"] == LEADING:
            found = experiment.run_cell(CONFIG, cell, cell.key(0))
            assert found["distances"].shape == (4,)
            assert found["distances_at_start"].max() < 0.2
