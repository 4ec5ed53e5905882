"""Whether α(x) pays: the comparison's bookkeeping, and what it says when it does or does not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from levymc_lab.paper import stable_like as experiment
from levymc_lab.paper.stable_like import BARRIER, JUDGED, LAWS, TUNED, WELLS

CONFIG = experiment.StableLike(num_chains=64, num_steps=10, step_sizes=(0.01, 0.1))


def results(varying, constant, divergent=0):
    """Distances of the laws where judged; where tuned, the second step is the better one."""
    found = {}
    for cell in experiment.cells(CONFIG):
        value = constant if LAWS[cell["law"]].is_constant else varying
        tv = value if cell["step_size"] == 0.1 else 0.9
        scores = {"tv": tv, "hops": 3.0}
        found[cell.id] = {
            "divergent": divergent,
            "evaluations": 100,
            **{f"{per}_{name}": v for per in ("steps", "work") for name, v in scores.items()},
        }
    return experiment.summarise(CONFIG, found)


def judged(tables):
    checks = experiment.checks(CONFIG, tables)
    return [check.outcome for check in checks], experiment.verdict(CONFIG, tables, checks)


def test_it_pays_or_not_by_more_than_chance():
    tables = results(0.1, 0.5)
    assert set(tables["chosen"]["step_size"].tolist()) == {0.1}
    outcomes, verdict = judged(tables)
    assert outcomes == ["pass"] * 3
    assert verdict.words.startswith("It pays at equal steps: total variation 0.100")
    assert experiment.figures(CONFIG, tables).keys() == experiment.EXPERIMENT.captions.keys()
    outcomes, verdict = judged(results(0.3, 0.25))
    assert outcomes == ["pass", "explained", "explained"]
    assert "It does not pay at equal steps (level" in verdict.words
    assert judged(results(0.1, 0.5, divergent=1))[1].kind == "not reproduced"


def test_laws_are_chosen_where_they_are_tuned():
    """Of the better one where they are judged, some of the lead would be chance's."""
    names = ("law", "equal", "tuned_tv", "judged_tv")
    rows = [(BARRIER, 0.1, 0.4), (WELLS, 0.2, 0.3), ("α = 1.5", 0.2, 0.1), ("α = 1.2", 0.1, 0.2)]
    table = experiment.Table.stack(
        "", [dict(zip(names, (law, "steps", *at), strict=True)) for law, *at in rows]
    )
    varying, constant = experiment.best({"chosen": table}, "steps")
    assert (varying["law"], constant["law"]) == (BARRIER, "α = 1.2")


@pytest.mark.parametrize("name", [TUNED, JUDGED])
def test_alpha_is_that_of_the_law_in_wells_and_barrier(name):
    of = experiment.target(name)
    barrier = 0.0 if name == TUNED else -2.0
    for law in (LAWS[BARRIER], LAWS[WELLS]):
        alpha = experiment.alpha_fn(name, law)
        assert float(alpha(jnp.asarray(of.start))) == pytest.approx(law.in_wells, abs=0.03)
        assert float(alpha(jnp.asarray(barrier))) == pytest.approx(law.in_barrier, abs=0.1)


@pytest.mark.parametrize("name", [TUNED, JUDGED])
def test_the_drift_is_right_with_the_panels_that_are_used(name):
    """Against twice as many, where the chains are."""
    of, law = experiment.target(name), LAWS[BARRIER]
    finer = experiment.drifts.stable_like(
        of.logdensity_fn, experiment.alpha_fn(name, law), radius=experiment.RADIUS, num_panels=48
    )
    used = experiment.drift(name, law)
    both = jax.jit(lambda x: (used(x), finer(x)))
    for x in (of.start - 0.3, of.start + 0.4, 0.3):
        found, expected = both(jnp.asarray(x))
        np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_a_single_alpha_makes_more_steps_of_as_many_evaluations():
    many = experiment.num_steps(CONFIG, TUNED, LAWS["α = 1.5"])
    assert many == 10 * experiment.evaluations(TUNED, LAWS[BARRIER]) // 97
    assert experiment.num_steps(CONFIG, TUNED, LAWS[BARRIER]) == 10
