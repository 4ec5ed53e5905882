"""The search for step sizes: what is kept of the chains, and that a choice is judged elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc import schedules
from levymc_lab.paper import _double_well as well
from levymc_lab.paper import double_well_bias as experiment
from levymc_lab.paper.double_well_bias import METHODS, DoubleWellBias, simulate

CONFIG = DoubleWellBias(
    alphas=(1.7, 2.0),
    num_steps=100,
    fla_a=(0.1, 1.0),
    fla_b=(0.5,),
    flmc_a=(1.0,),
    mafla_a=(1.0,),
    exact_b=(0.5,),
    num_sets=3,
    num_repeats=4,
)


@pytest.fixture(scope="module")
def tables():
    """Of results that were made up; Euler's first pair is good on the second set only."""
    rng = np.random.default_rng(0)
    results = {}
    for cell in experiment.cells(CONFIG):
        shape = (len(CONFIG.pairs(cell["method"])), CONFIG.num_sets)
        bias = rng.uniform(1, 2, (*shape, CONFIG.num_repeats))
        if cell["method"] == METHODS[0]:
            bias[0], bias[1] = 3.0, -2.0
            bias[0, 1] = 0.01
        scores = ("tv", "left_mass", "hops", "exploded")
        results[cell.id] = {"bias": bias, **{name: rng.uniform(size=shape) for name in scores}}
    return experiment.summarise(CONFIG, results)


def test_summaries_are_those_of_the_path():
    pairs, count = np.array([[1.0, 0.1], [0.5, 0.6]]), 2000  # steps of about 0.6 hop often
    found = simulate("FLA, tamed", 1.5, pairs, 1, count, jax.random.key(0))
    sampler = well.algorithm(well.Sampler("FLA, tamed", 1.5, schedules.polynomial(1.0, 0.1)))
    starts = jnp.full(2, jnp.float32(-5.0))
    path = levymc.sample(sampler, jax.random.key(0), starts, count, progress=False)
    x, w = np.asarray(path.positions[0], np.float64), np.asarray(path.weights[0], np.float64)
    assert found["mean"][0] == pytest.approx((x * w).sum() / w.sum(), rel=1e-4)
    scores = well.scores(x[None], w[None])
    distance = np.abs(found["histogram"][0] - well.masses()).sum() / 2
    assert distance == pytest.approx(scores["tv"], abs=1e-3)
    assert found["hops"][0] == scores["hops"] > 0


def test_a_chain_that_explodes_is_marked_and_stays_finite():
    pairs = np.array([[100.0, 0.2], [1e-6, 0.6]])
    found = simulate("FLA, Euler", 1.7, pairs, 1, 20, jax.random.key(0))
    assert (found["divergences"] > 0).tolist() == [True, False]
    assert np.all(np.isfinite(found["mean"]))
    assert abs(found["mean"][0]) > 1e4  # it stops where log φ overflows, at some 1e9


@pytest.mark.nightly
def test_pairs_of_the_exact_drift_are_one_program():
    """A list of samplers whose functions differ would be refused."""
    found = simulate("FLMC", 1.7, np.array([[1.0, 0.5], [0.1, 0.3]]), 2, 3, jax.random.key(0))
    assert found["histogram"].shape == (4, well.EDGES.size + 1)


def test_a_pair_is_chosen_on_one_set_and_judged_on_the_next(tables):
    rows = tables["sets"].where(method=METHODS[0], alpha=1.7, selected_by="mean |bias|")
    assert rows["a"].tolist() == [1.0, 0.1, 1.0]
    assert rows["chosen_abs_bias"].tolist() == pytest.approx([2.0, 0.01, 2.0])
    assert rows["abs_bias"].tolist() == pytest.approx([2.0, 3.0, 2.0])


def test_the_diffusion_of_fla_has_a_bias_of_its_own(tables):
    diffusion = tables["diffusion"]
    assert diffusion["mean"][0] == pytest.approx(-0.0105, abs=1e-3)
    assert diffusion["bias"].tolist() == pytest.approx([0.291, 0.0], abs=2e-3)
    assert diffusion["published"].tolist() == [0.2515, 3.233]


def test_the_verdict_says_how_many_pairs_were_tried_and_where_the_choice_is_at_an_end(tables):
    """Made-up results: Euler's pairs as above; on the second set the least a is chosen."""
    words = experiment.verdict(CONFIG, tables, []).words
    assert "FLA, Euler 2 and 4 of 6;" in words
    assert "MAFLA 6 and 6 of 6" in words
    exact, tamed = (
        tables["bias"].where(method=method, selected_by="mean |bias|", alpha=1.7)["abs_bias"]
        for method in ("FLMC", "FLA, tamed")
    )
    assert (
        "with 1 pairs tried for each α, and less than tamed FLA's, with 2, for "
        f"{int(exact[0] < tamed[0])} of 1 α."
    ) in words


def test_the_full_grids_begin_where_chains_stay_and_end_where_they_explode():
    config = experiment.EXPERIMENT.config("paper")
    first, last = (config.pairs("FLA, Euler")[place][None] for place in (3, -4))
    assert first.tolist() == [[1e-11, 0.8]]
    assert last.tolist() == [[1000.0, 0.2]]
    assert simulate("FLA, Euler", 1.7, first, 4, 2000, jax.random.key(0))["hops"].sum() == 0
    assert np.all(simulate("FLA, Euler", 1.7, last, 4, 2000, jax.random.key(0))["divergences"] > 0)


def test_checks_verdict_and_figure_follow_from_the_tables(tables):
    checks = experiment.checks(CONFIG, tables)
    assert len({check.name for check in checks}) == len(checks) > 3
    assert experiment.verdict(CONFIG, tables, checks).words
    assert experiment.figures(CONFIG, tables).keys() == experiment.EXPERIMENT.captions.keys()
