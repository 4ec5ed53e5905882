"""Step sizes of belief networks, on synthetic pictures: chains, tables, verdicts."""

import base64
import dataclasses
import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import levymc
from levymc import models
from levymc.run import _store
from levymc_lab import data, paper
from levymc_lab import framework as experiments
from levymc_lab.framework import Table
from levymc_lab.paper import _sbn_stepsize_results, sbn_stepsize
from levymc_lab.paper._sbn_stepsize_results import NAMES
from levymc_lab.paper.sbn_stepsize import EXPERIMENT

QUICK = EXPERIMENT.profiles["quick"]
CELLS = {cell.id: cell for cell in sbn_stepsize.cells(QUICK)}
FIGURES = ("sbn-stepsize", "sbn-annealing", "sbn-model")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pictures")


@pytest.fixture(scope="module")
def results(folder):
    return experiments.run(EXPERIMENT, folder, jobs=0)


def cells_of(folder, *ids):
    """What some of the cells left on disk, by id."""
    return {id: dict(np.load(folder / f"sbn-stepsize/cells/{id}.npz")) for id in ids}


@pytest.mark.nightly
def test_quick_profile(results):
    assert not results.has_failed
    assert results.verdict.kind == "measured here"
    assert results.verdict.words.startswith(
        "On synthetic pictures. At the largest step, by 2 paired seeds and with 5% false alarms"
    )
    assert "nan" not in results.verdict.words
    for name in FIGURES:
        assert results.figure(name, "png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.nightly
def test_each_run_has_its_row(results):
    runs = results.tables["runs"]
    assert len(runs) == len(CELLS) - 2  # but annealing
    assert set(runs["sampler"]) == set(NAMES.values())
    assert np.all(np.isfinite(runs["loglikelihood"]))
    assert np.all(runs["loglikelihood"] < 0)
    assert np.all(runs["error"] > 0)
    assert not runs["divergences"].any()
    assert set(runs["iterations"]) == {12}
    ends = runs.where(sampler=NAMES["warm"])
    is_end = np.isin(ends["step"], QUICK.ends)
    assert np.isfinite(ends["all_images"]).tolist() == is_end.tolist()
    for name in ("all_images", "all_error", "gain", "gain_error"):
        assert np.isfinite(runs[name]).sum() == is_end.sum()


@pytest.mark.nightly
def test_the_grid_averages_seeds_of_runs_of_one_length(results):
    grid, runs = results.tables["grid"], results.tables["runs"]
    points = {(row["alpha"], row["step"]) for row in grid.rows()}
    assert points == {(a, s) for a in (2.0, 1.8, 1.6) for s in QUICK.steps}
    assert set(grid["seeds"]) == {2}
    (row,) = grid.where(alpha=1.6, step=4.473e-5).rows()
    both, beside = (
        runs.where(sampler=NAMES["warm"], alpha=alpha, step=4.473e-5) for alpha in (1.6, 2.0)
    )
    assert row["loglikelihood"] == pytest.approx(both["loglikelihood"].mean())
    assert row["all_images"] == pytest.approx(both["all_images"].mean())
    assert row["half_range"] == pytest.approx(np.ptp(both["loglikelihood"]) / 2)
    above = both["loglikelihood"].mean() - beside["loglikelihood"].mean()
    assert row["above_sgld"] == pytest.approx(above)
    assert 0 < row["give_or_take"] < row["give_or_take_anywhere"]


ERROR = 0.3  # nats, of runs that `found_at` makes


def found_at(shift):
    """Cells of a grid whose SGLD falls by 30, and each α by as much less as `shift` says.

    The second seed is a nat above the first for all; beside that all α but 1.8 are `ERROR` higher
    by one and lower by the other, and 1.8 the other way about.
    """
    config = dataclasses.replace(QUICK, source="mnist")
    results = {}
    for cell in sbn_stepsize.cells(config):
        if cell["kind"] == "warm":
            fall = 30 * config.steps.index(cell["step"]) / 2
            less = shift.get(cell["alpha"], 0.0) * (cell["step"] == config.ends[1])
            own = ERROR * (1 - 2 * cell["seed"]) * (1 if cell["alpha"] == 1.8 else -1)
            value = -100 - fall + less + cell["seed"]
            rest = dict.fromkeys(("error", "spread", "largest", "seconds", "gain", "gain_error"), 1)
            rest |= {"divergences": 0, "all_images": value - 2 * less, "all_error": 0.5}
            results[cell.id] = {"loglikelihood": value + own, **rest}
    return judge(config, results)


def bar(comparisons):
    """By hand: what is left of ±0.3 over three α is 0.4, 0.2 and 0.2, each twice; t₂ pooled."""
    sigma = math.sqrt(2 * (0.4**2 + 2 * 0.2**2) / 2)
    return float(stats.t(2).isf(0.05 / (2 * comparisons))) * sigma


@pytest.mark.parametrize(
    ("shift", "words"),
    [
        (
            {},
            "no α can be told to lie above SGLD and of α = 1.8 (+0.0 ± 3.0), α = 1.6 (+0.0 ± 3.0)",
        ),
        ({1.6: 5.0, 1.8: 0.5}, "α = 1.6 (+5.0 ± 3.0) lies above SGLD and of α = 1.8 (+0.5 ± 3.0)"),
        (
            {1.6: -5.0, 1.8: -6.0},
            "above SGLD and α = 1.8 (-6.0 ± 3.0), α = 1.6 (-5.0 ± 3.0) lies b",
        ),
        ({1.6: 2.5, 1.8: -2.5}, "no α can be told to lie above SGLD and of α = 1.8 (-2.5 ± 3.0)"),
    ],
)
def test_words_on_robustness_are_no_stronger_than_the_seeds(shift, words):
    """With the rate of false alarms that `_paired` promises, of both α < 2 together."""
    tables, _, verdict = found_at(shift)
    start = "At the largest step, by 2 paired seeds and with 5% false alarms in all, "
    assert start in verdict.words
    assert words in verdict.words
    assert verdict.kind == "not reproduced"
    for row in tables["grid"].where(alpha=1.6).rows():
        assert row["give_or_take"] == pytest.approx(bar(2))
        assert row["give_or_take_anywhere"] == pytest.approx(bar(6))
    assert "Of the 6 pairs of a step and an α < 2, 0 can be told to lie above SGLD" in verdict.words


def test_falls_are_those_of_all_images():
    """Which go the other way here than the shared ones."""
    _, checks, _ = found_at({1.6: 5.0})
    falls = {check.name[-3:]: check.measured for check in checks if check.name.startswith("fall")}
    assert falls["1.6"] == pytest.approx(30 + 5.0)
    assert falls["1.8"] == pytest.approx(30)


def test_nothing_is_said_of_robustness_by_one_seed():
    config = dataclasses.replace(QUICK, num_seeds=1)
    steps = {(c["alpha"], c["step"]) for c in sbn_stepsize.cells(config) if c["kind"] == "warm"}
    rows = [
        {"sampler": NAMES["warm"], "alpha": alpha, "step": step, "loglikelihood": -100.0 - alpha}
        for alpha, step in steps
    ]
    table = Table.stack("", [{**row, "seed": 0, "all_images": np.nan} for row in rows])
    grid = _sbn_stepsize_results._grid(config, table)["grid"]
    words = " ".join(_sbn_stepsize_results._sentences(config, {"grid": grid}))
    assert "seeds" not in words
    assert "told" not in words


def test_each_image_has_its_likelihood_by_one_of_the_last_draws(monkeypatch):
    """In turn: of three draws the first has images 0, 3 and 6."""
    config = dataclasses.replace(QUICK, num_draws=3)
    draws = {"weights": np.arange(5.0)[None]}  # one chain of five draws
    monkeypatch.setattr(
        sbn_stepsize,
        "likelihood",
        lambda config, model, key, position, images, count: models.Annealed(
            jnp.asarray(100 * position["weights"] + images[:, 0], jnp.float32), jnp.zeros((1, 0))
        ),
    )
    images = np.arange(8.0)[:, None]
    found = sbn_stepsize.in_turn(config, None, jax.random.key(0), draws, images, 7)
    assert found.tolist() == [200, 301, 402, 203, 304, 405, 206, 307]


def annealed(gap):
    return {
        "first": np.array([-110.0, -105.0]),
        "last": np.array([-100.0, -104.0]),
        "below": np.array([-99.0, -97.0]),
        "above": np.array([-90.0, -97.0 + gap]),
    }


def test_annealing_is_judged_on_a_hard_network_too():
    """Where it misses its bar it is said why, and how much more temperatures change."""
    config = dataclasses.replace(QUICK, source="mnist")
    small = {"small_exact": -90.0, "small_one": -90.5, "small_annealed": -90.1}
    found = {"annealing": annealed(0.5) | small, "annealing-hard": annealed(4.0)}
    tables, checks, verdict = judge(config, found)
    assert [check.outcome for check in checks] == ["pass", "pass", "explained"]
    assert [check.measured for check in checks] == pytest.approx([-90.1, 0.5, 4.0])
    assert "hard network of J = 8, T = 20" in checks[2].name
    assert "On the hard network annealing with 10 temperatures gives -110.0" in verdict.words
    assert "simulated images lie between -97.0 and -93.0" in verdict.words
    assert len(tables["annealing"].where(network="hard")) == 2
    # Where the easy one misses it, nothing explains it away.
    _, (*_, easy), _ = judge(config, {"annealing": annealed(4.0) | small})
    assert easy.outcome == "fail"


def test_the_hard_network_is_the_grid_s(monkeypatch):
    """The largest step and the smallest α, at full length."""
    seen = []
    monkeypatch.setattr(sbn_stepsize, "_at", lambda tree, place: None)
    run = types.SimpleNamespace(positions=None)
    monkeypatch.setattr(sbn_stepsize, "chain", lambda config, cell, *rest: seen.append(cell) or run)
    cell = CELLS["annealing-hard"]
    sbn_stepsize._trained(QUICK, cell, None, None, "chain", is_hard=True)
    sbn_stepsize._trained(QUICK, cell, None, None, "chain", is_hard=False)
    hard, easy = seen
    assert hard == {"kind": "warm", "alpha": 1.6, "step": 2.828e-4, "length": 12}
    assert easy == {"kind": "cold", "alpha": 2.0, "step": 4.473e-5, "length": 6}


@pytest.mark.nightly
def test_annealing_is_checked_against_enumeration(results):
    small, *brackets = results.checks
    (row,) = results.tables["enumerated"].rows()
    assert (small.measured, small.target) == (row["annealed"], row["exact"])
    assert small.tolerance == 0.3
    for name, bracket in zip(("easy", "hard"), brackets, strict=True):
        (last,) = results.tables["annealing"].where(network=name, temperatures=20).rows()
        assert bracket.measured == pytest.approx(last["above"] - last["below"])
    assert all(check.outcome in ("pass", "explained") for check in results.checks)


@pytest.mark.nightly
def test_pictures_are_whole(results):
    pictures = results.tables["pictures"]
    assert "α = 1.6" in pictures.caption
    counts = {what: len(pictures.where(what=what)) for what in set(pictures["what"])}
    assert counts == {"weights": 8, "originals": 10, "reconstructions": 10, "fantasies": 20}
    sizes = {len(base64.b64decode(text)) for text in pictures["pixels"]}
    assert sizes == {784}
    first = np.frombuffer(base64.b64decode(pictures.where(what="originals")["pixels"][0]), np.uint8)
    np.testing.assert_array_equal(first, 255 * sbn_stepsize.split(QUICK).test[0])


def judge(config, found):
    """Tables, checks, verdict and figures of some cells; a warning is an error."""
    tables = EXPERIMENT.summarise(config, found)
    checks = EXPERIMENT.checks(config, tables)
    pictures = EXPERIMENT.figures(config, tables)
    assert pictures.keys() == set(FIGURES)
    for figure in pictures.values():
        figure.canvas.draw()
    return tables, checks, EXPERIMENT.verdict(config, tables, checks)


@pytest.mark.nightly
def test_parts_annealing_alone(folder, results):
    tables, checks, verdict = judge(QUICK, cells_of(folder, "annealing"))
    assert tables.keys() == {"annealing", "enumerated"}
    assert len(checks) == 2
    assert verdict.words.startswith("On synthetic pictures. On the easy network annealing with 10")


@pytest.mark.nightly
def test_parts_one_run_alone(folder, results):
    """Of a point without a neighbour nothing can be said, and nothing is."""
    tables, checks, verdict = judge(QUICK, cells_of(folder, "warm-alpha=2-step=4.473e-05-seed=0"))
    assert tables.keys() == {"runs", "grid"}
    assert checks == []
    assert (verdict.kind, verdict.words) == ("measured here", "On synthetic pictures.")


@pytest.mark.nightly
def test_parts_an_ablation_alone(folder, results):
    (id,) = [id for id in CELLS if id.startswith("sgld")]
    tables, checks, verdict = judge(QUICK, cells_of(folder, id))
    assert tables.keys() == {"runs"}
    assert checks == []
    assert "SGLD, step c_α η" in verdict.words


@pytest.mark.nightly
def test_a_run_that_is_stopped_shows_its_parts(folder, results, tmp_path):
    """From the first three cells; none is made again."""
    (tmp_path / "sbn-stepsize/cells").mkdir(parents=True)
    for id in list(CELLS)[:3]:
        name = f"sbn-stepsize/cells/{id}.npz"
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    manifest = "sbn-stepsize/manifest.json"
    (tmp_path / manifest).write_bytes((folder / manifest).read_bytes())
    found = experiments.so_far(tmp_path / "sbn-stepsize")
    assert (found.num_done, found.num_cells) == (3, len(CELLS))
    assert found.picture("sbn-model", "png").startswith(b"\x89PNG")


@pytest.mark.nightly
def test_no_verdict_before_both_ends_are_there(folder, results):
    """Of MNIST, the fall is from the smallest to the largest step, not between any two."""
    config = dataclasses.replace(QUICK, source="mnist")
    ends = {min(QUICK.steps), max(QUICK.steps)}
    runs = [id for id, cell in CELLS.items() if cell["kind"] == "warm" and cell["seed"] == 0]
    whole = judge(config, cells_of(folder, *runs))
    assert whole[2].kind in ("reproduced", "not reproduced")
    assert sum(check.name.startswith("fall") for check in whole[1]) == len(QUICK.alphas)
    without = [id for id in runs if CELLS[id]["step"] != max(ends)]
    part = judge(config, cells_of(folder, *without))
    assert part[2].kind == "measured here"
    assert not any(check.name.startswith("fall") for check in part[1])


def test_cells_share_streams_by_seed_and_have_ids_of_their_own():
    """Runs of one seed and step begin alike and see the same minibatches, but at no other step."""
    assert len(CELLS) == len(sbn_stepsize.cells(QUICK))
    runs = [cell for cell in CELLS.values() if cell["kind"] != "annealing"]
    streams = {(cell["step"], cell["seed"]): cell.stream for cell in runs}
    assert all(cell.stream == streams[cell["step"], cell["seed"]] for cell in runs)
    assert len(set(streams.values())) == len(streams) == 2 * len(QUICK.steps)
    paper = sbn_stepsize.cells(EXPERIMENT.profiles["paper"])
    assert len({cell.id for cell in paper}) == len(paper)


def one_step(kind, alpha=1.6, step=2.828e-4):
    """How the weights move in the first step, of 100 images from one start."""
    config = dataclasses.replace(QUICK, num_train=100, batch_size=100)
    cell = {"kind": kind, "alpha": alpha, "step": step, "length": 1}
    key, model = jax.random.key(0), sbn_stepsize.network(8, 1)
    run = sbn_stepsize.chain(config, cell, model, key)
    position = model.init(jax.random.split(key)[0], dtype=jnp.float32)
    assert run.observed["divergences"].tolist() == [0]
    how_far = sbn_stepsize.settings(config, cell).steps.eta
    return np.asarray(run.positions["weights"][0, 0] - position["weights"]), how_far


@pytest.mark.nightly
def test_parts_of_the_step_differ_as_they_say():
    """One step from one start with one minibatch: its drift, and each law of noise.

    Medians of 6272 absolute values; the bound of 10 % is five of their standard errors, or more.
    """
    alpha, step = 1.6, 2.828e-4
    drift = float(levymc.riesz.leading_coefficient(alpha - 2)) * step
    moved = {kind: one_step(kind)[0] for kind in ("warm", "sgld", "normal", "sgd")}
    noise = {kind: shift - moved["sgd"] for kind, shift in moved.items()}
    scales = {
        "warm": (step ** (1 / alpha), alpha),
        "normal": (step ** (1 / alpha), 2.0),
        "sgld": (math.sqrt(drift), 2.0),
    }
    for kind, (scale, law) in scales.items():
        median = np.median(np.abs(noise[kind]))
        assert median == pytest.approx(scale * float(levymc.stable.ppf(0.75, law)), rel=0.1)
    # Of twice the step SGD goes twice as far; noise would not.
    twice, _ = one_step("sgd", step=2 * step)
    np.testing.assert_allclose(twice, 2 * moved["sgd"], rtol=1e-3, atol=2e-7)


def test_the_drift_is_c_alpha_eta_times_the_gradient():
    """Of SGD, whose step has nothing else: with the latents that the step drew."""
    moved, how_far = one_step("sgd")
    assert how_far == pytest.approx(
        float(levymc.riesz.leading_coefficient(-0.4)) * 2.828e-4, rel=1e-6
    )
    config = dataclasses.replace(QUICK, num_train=100)
    model = sbn_stepsize.network(8, 1)
    key_start, key_run = jax.random.split(jax.random.key(0))
    key_first = jax.random.fold_in(jax.random.fold_in(key_run, 0), 0)  # of chain 0, step 0
    key_batch, key_step = jax.random.split(key_first)
    key_latents, _ = jax.random.split(key_step)
    points = {"images": sbn_stepsize.split(config).train, "index": np.arange(100)}
    batch = levymc.batches(points, 100).draw(key_batch)
    position = model.init(key_start, dtype=jnp.float32)
    complete, _ = model.latents(key_latents, position, batch, model.memory(100))
    gradient = model.grad_estimator(100)(position, complete)["weights"]
    np.testing.assert_allclose(moved, how_far * np.asarray(gradient), rtol=1e-3, atol=2e-6)


@pytest.mark.nightly
def test_a_chain_that_was_killed_goes_on_to_the_same_numbers(tmp_path, monkeypatch):
    """It fails after its first part, and is called again as the framework would."""
    config = dataclasses.replace(QUICK, num_iterations=40, num_train=100)
    cell = {"kind": "best", "alpha": 1.6, "step": 1e-4, "length": 40}
    key, model, store = jax.random.key(0), sbn_stepsize.network(4, 1), tmp_path / "cell" / "chain"
    append = _store._Sink.append

    def fail(sink, part):
        append(sink, part)
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(_store._Sink, "append", fail)
        with pytest.raises(RuntimeError, match="killed"):
            sbn_stepsize.chain(config, cell, model, key, store)
    assert 0 < _store.open_store(store).done < 40
    resumed = sbn_stepsize.chain(config, cell, model, key, store)
    whole = sbn_stepsize.chain(config, cell, model, key)
    assert resumed.steps.tolist() == whole.steps.tolist() == list(range(4, 41, 4))
    jax.tree.map(np.testing.assert_array_equal, resumed.positions, whole.positions)


def test_decreasing_steps_are_the_config_s():
    how = sbn_stepsize.settings(QUICK, {"kind": "best", "alpha": 1.6, "step": 1.0})
    assert (how.alpha, how.temperature) == (1.6, 1.0)
    eta, time_scale, power = QUICK.best
    assert how.steps(600) == pytest.approx(eta * (1 + 600 / time_scale) ** -power)


def test_the_paper_s_figure_is_covered():
    """Every α and step of Figure 6 by two seeds at full length; cold runs at both ends only."""
    config = EXPERIMENT.profiles["paper"]
    figure = paper.published("fig6_sbn_loglik_vs_eta")
    wanted = {(row["alpha"], row["x"], seed) for row in figure.rows() for seed in (0, 1)}
    every = [cell for cell in sbn_stepsize.cells(config) if cell["kind"] != "annealing"]
    grid = [cell for cell in every if cell["kind"] == "warm"]
    assert {(cell["alpha"], cell["step"], cell["seed"]) for cell in grid} == wanted
    assert len(grid) == 9 * 5 * 2
    assert {cell["length"] for cell in every} == {5000}
    cold = [cell for cell in every if cell["kind"] == "cold"]
    assert {cell["step"] for cell in cold} == {3.998e-5, 2.828e-4}
    assert len(cold) == 5


def test_test_images_are_not_learnt_from():
    split = sbn_stepsize.split(QUICK)
    assert (split.train.shape, split.test.shape) == ((200, 784), (20, 784))
    assert set(np.unique(split.train)) == {0, 1}
    seen = {image.tobytes() for image in split.train}
    assert not any(image.tobytes() in seen for image in split.test)


def test_the_first_test_images_are_not_those_of_the_official_order(monkeypatch):
    """Of 60 of 60, as of some: by chance they stay in order once in 60! permutations."""
    grey = np.zeros((60, 28, 28), np.uint8)
    grey.reshape(60, -1)[np.arange(60), np.arange(60)] = 255  # its number
    pictures = types.SimpleNamespace(train_images=grey[:5], test_images=grey)
    monkeypatch.setattr(data, "load", lambda name: pictures)
    sbn_stepsize._split.cache_clear()
    numbers = sbn_stepsize._split("mnist", 5, 60, 0).test.argmax(axis=1)
    sbn_stepsize._split.cache_clear()
    assert sorted(numbers) == list(range(60))
    assert numbers[:10].max() > 10


def test_missing_pictures_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("LEVYMC_DATA", str(tmp_path))
    with pytest.raises(data.MissingDataError, match="levymc data import mnist"):
        experiments.preflight(EXPERIMENT, tmp_path / "out", profile="paper")
    assert not (tmp_path / "out").exists()
