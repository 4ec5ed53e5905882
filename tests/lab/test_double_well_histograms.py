"""Figure 2 and the demo, at sizes of seconds."""

import contextlib
import dataclasses
import io
import json
import re

import jax
import numpy as np
import pytest
from rich.cells import cell_len

from levymc import diagnostics
from levymc_lab import framework as experiments
from levymc_lab.paper import _double_well as well
from levymc_lab.paper import demo
from levymc_lab.paper import double_well_histograms as histograms
from levymc_lab.report import write_page

TINY = histograms.Histograms(num_runs=3, num_steps=200)


def with_sizes(experiment, config):
    return dataclasses.replace(experiment, profiles={"quick": config, "paper": config})


@pytest.fixture(scope="module")
def ula():
    cell = histograms.cells(TINY)[0]
    return histograms.run_cell(TINY, cell, cell.key(0))


def test_facts_of_the_target():
    x = np.linspace(-8, 8, 16001)
    share = well.density(x) * (x[1] - x[0])
    assert share.sum() == pytest.approx(1, abs=1e-9)
    assert share @ x == pytest.approx(well.MEAN, abs=1e-5)
    assert share @ x**2 - (share @ x) ** 2 == pytest.approx(well.VARIANCE, abs=1e-3)
    assert well.masses().sum() == pytest.approx(1, abs=1e-9)
    assert well.masses()[:31].sum() == pytest.approx(well.LEFT_MASS, abs=1e-5)
    depth = well.potential(0.0) - well.potential(well.LEFT_MINIMUM)
    assert depth == pytest.approx(well.BARRIER, abs=0.05)


def test_density_is_that_of_the_model():
    x = np.linspace(-6, 6, 25)
    model = np.asarray(jax.vmap(well.target)(x))
    np.testing.assert_allclose(np.log(well.density(x)) - model, np.log(well.density(0)) + 3.05)
    np.testing.assert_allclose(well.potential(x), -model, atol=1e-12)


def test_scores_of_draws_made_by_hand():
    positions = np.array([[-3.5, 3.5, 0.0, 3.5], [-3.5, -3.5, 0.0, -3.5]])
    scores = well.scores(positions)
    assert scores["hops"] == 1
    assert scores["bias"] == pytest.approx(-7 / 8 - well.MEAN)
    assert scores["abs_bias"] == pytest.approx(
        (abs(3.5 / 4 - well.MEAN) + abs(-10.5 / 4 - well.MEAN)) / 2
    )
    assert scores["left_mass_error"] == pytest.approx(4 / 8 - well.LEFT_MASS)


def test_scores_take_weights():
    positions = np.array([[-3.5, 3.5, 100.0]])
    weights = np.array([[3.0, 1.0, 0.0]])
    scores = well.scores(positions, weights)
    assert scores["bias"] == pytest.approx(-1.75 - well.MEAN)
    assert scores["left_mass_error"] == pytest.approx(0.75 - well.LEFT_MASS)


def test_total_variation_is_that_of_the_diagnostics():
    generator = np.random.default_rng(0)
    positions, weights = generator.normal(0, 4, (2, 500)), generator.uniform(size=(2, 500))
    expected = diagnostics.total_variation(positions, well.target, well.EDGES, weights=weights)
    assert well.scores(positions, weights)["tv"] == pytest.approx(expected, abs=1e-6)


def test_shape_does_not_count_the_mass_of_the_wells():
    centres = (well.EDGES[:-1] + well.EDGES[1:]) / 2
    counts = np.round(1e4 * well.masses()[1:-1]).astype(int)
    counts[centres < 0] *= 3  # three times too much in the left well, in the right shape
    positions = np.repeat(centres, counts)[None]
    assert well.scores(positions)["tv"] > 0.2
    assert well.scores(positions, well.balanced(positions))["tv"] < 2e-3


def test_a_cell_is_deterministic_and_starts_left(ula):
    cell = histograms.cells(TINY)[0]
    np.testing.assert_equal(histograms.run_cell(TINY, cell, cell.key(0)), ula)
    assert (ula["hops"], ula["both_wells"], ula["exploded"]) == (0, 0, 0)
    assert ula["left_mass_error"] == pytest.approx(1 - well.LEFT_MASS)


def test_euler_explodes_at_large_steps_and_is_counted_without_a_warning():
    sampler = well.Sampler("FLA, Euler", 1.7, 0.5)
    result = well.run_from_left(sampler, jax.random.key(0), 2, 200)
    assert well.measure(result)["exploded"] == 2


def test_cells_become_tables_and_a_figure(ula):
    """With ULA's numbers for all: the others take long to compile, and the demo has them."""
    names = [sampler.name for sampler in histograms.samplers(TINY)]
    results = {cell.id: ula for cell in histograms.cells(TINY)}
    tables = histograms.summarise(TINY, results)
    assert tables["scores"]["sampler"].tolist() == names
    checks = histograms.checks(TINY, tables)
    assert [check.source for check in checks[:2]] == ["paper", "paper"]
    words = histograms.verdict(TINY, tables, checks)
    assert words.kind == "not reproduced"  # as "FLA" sees one well
    passed = [dataclasses.replace(check, measured=check.target) for check in checks]
    assert histograms.verdict(TINY, tables, passed).kind == "reproduced"
    figures = histograms.figures(TINY, tables)
    assert set(figures) == set(histograms.EXPERIMENT.captions)


def test_left_mass_check_allows_for_the_start_and_for_chance():
    row = {"sampler": "x", "hops": 10.0, "runs": 50, "left_mass_error": 0.02}
    assert well.check_left_mass({**row, "left_mass_spread": 0.0}).holds
    far = {**row, "left_mass_error": 0.2}
    assert not well.check_left_mass({**far, "left_mass_spread": 0.01}).holds
    assert well.check_left_mass({**far, "left_mass_spread": 0.1}).holds


def test_the_experiment_is_registered():
    assert experiments.get("double-well-histograms") is histograms.EXPERIMENT


def test_the_floor_of_the_distance_is_that_of_independent_draws():
    """Over 2000 multinomial samples of 10 000.

    False-alarm rate 1e-6 by McDiarmid's inequality, as a draw changes the mean by 1/(2e7) at most;
    detects a floor that is off by 4 %.
    """
    law = well.masses() / well.masses().sum()
    counts = np.random.default_rng(0).multinomial(10_000, law, 2000)
    distances = np.abs(counts / 10_000 - law).sum(axis=1) / 2
    bound = np.sqrt(np.log(2e6) / (2 * 2000 * 10_000))
    assert distances.mean() == pytest.approx(well.floor(10_000), abs=bound)


TINY_DEMO = demo.Demo(num_runs=2, num_steps=100, auto_budget=2000)


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory):
    """What the demo leaves, and prints on 60 columns."""
    tiny, printed = with_sizes(demo.EXPERIMENT, TINY_DEMO), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setenv("COLUMNS", "60")
        out = demo.main(tmp_path_factory.mktemp("out") / "demo", experiment=tiny)
    return out, printed.getvalue()


def test_demo_runs_in_a_folder_of_its_own(demo_folder):
    out, _ = demo_folder
    results = experiments.load(out / "double-well")
    assert results.manifest["command"] == "levymc demo"
    names = ["ULA", "FLA", "FLMC", "levymc.auto"]
    assert results.tables["scores"]["sampler"].tolist() == names
    assert results.figure("double-well", "png").stat().st_size > 10_000
    assert json.loads((out / "double-well" / "manifest.json").read_text())["dtype"] == "float32"


def test_demo_explains_its_table_on_60_columns(demo_folder):
    _, shown = demo_folder
    table, _, rest = shown.partition("TV: Total variation")
    assert max(map(cell_len, table.splitlines())) <= 60
    assert all(word in table for word in ("left mass", "(0.543)", "hops a", "draws", "seconds"))
    (last,) = (line for line in table.splitlines() if "levymc.auto" in line)
    assert re.search(r" 0\.\d{3} ± 0\.\d{3} .* \d+\.\d$", last)  # nothing is parted or cut
    assert "FLMC's left mass is" in " ".join(rest.split())
    assert "double-well.png" in rest


def test_the_demo_has_a_page_about_the_demo(demo_folder):
    out, _ = demo_folder
    text = write_page(out).read_text("utf-8")
    assert "<h1>A double well, four samplers</h1>" in text
    assert "Total variation, the share of the draws" in text
    for words in ("run again", "Verdicts", "published ones", 'href="#summary"'):
        assert words not in text


@pytest.mark.parametrize(
    ("error", "words"), [(0.04, "is Monte Carlo error"), (0.3, "is more than")]
)
def test_demo_blames_chance_only_where_the_check_holds(error, words):
    row = {"sampler": "FLMC", "hops": 8.0, "runs": 32, "left_mass_error": error}
    row |= {"left_mass_spread": 0.01, "left_mass": well.LEFT_MASS + error}
    assert words in demo._on_left_mass(row, [well.check_left_mass(row)])
