"""Draws for ArviZ, of either of its designs, and summaries that know the weights of draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc import diagnostics

arviz = pytest.importorskip("arviz")

KEY = jax.random.key(0)
IS_TREE = int(arviz.__version__.split(".")[0]) >= 1
STARTS = {"school": jnp.zeros((4, 3)), "tau": jnp.ones(4)}


def logdensity_fn(position):
    return -jnp.sum(position["school"] ** 2) / 2 - position["tau"] ** 2 / 2


@pytest.fixture(scope="module")
def walked():
    walk = levymc.levy_walk(logdensity_fn, 1.0)
    return levymc.sample(walk, KEY, STARTS, 200, thin=2, progress=False)


@pytest.fixture(scope="module")
def weighted():
    """Steps that decrease by a factor of 10 over the run."""
    step_size = levymc.schedules.polynomial(0.5, 1.0)
    algorithm = levymc.ula(lambda x: -x * x / 2, step_size)
    return levymc.sample(algorithm, KEY, jnp.linspace(-1, 1, 4), 400, progress=False)


def test_it_is_what_the_installed_version_calls_its_own(walked):
    data = walked.to_arviz()
    assert type(data).__name__ == ("DataTree" if IS_TREE else "InferenceData")
    assert data["posterior"].attrs["inference_library"] == "levymc"
    assert data["posterior"].attrs["algorithm"] == "levy_walk"
    assert "school[0]" in arviz.summary(data).index


def test_axes_have_names_and_labels(walked):
    names = ["a", "b", "c"]
    data = walked.to_arviz(dims={"school": ["which"]}, coords={"which": names})
    school = data["posterior"]["school"]
    assert school.dims == ("chain", "draw", "which")
    assert school.coords["which"].values.tolist() == names
    assert data["posterior"]["tau"].dims == ("chain", "draw")
    one = school.sel(which="b", draw=walked.steps[3], chain=2)
    assert float(one) == walked.positions["school"][2, 3, 1]
    assert np.array_equal(school.coords["draw"], walked.steps)
    assert np.array_equal(data["sample_stats"].coords["draw"], walked.steps)


def test_labels_of_draws_may_be_given(walked):
    data = walked.to_arviz(coords={"draw": np.arange(100)})
    assert data["posterior"].coords["draw"].values.tolist() == list(range(100))


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"mu": ["which"]}, "`dims` must name variables of the run, school, tau, got 'mu'. Give"),
        ({"school": []}, r"`dims` must have 1 names for school of shape \(3,\), got \[\]. Give"),
        ({"tau": ["one"]}, r"`dims` must have 0 names for tau of shape \(\), got \['one'\]. Give"),
        ({"school": "a"}, r"`dims` must have 1 names for school of shape \(3,\), got 'a'. Give"),
    ],
)
def test_names_that_do_not_fit_are_refused(walked, dims, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        walked.to_arviz(dims=dims)


def test_the_log_density_is_there_where_it_is_asked_for(walked):
    assert "lp" not in walked.to_arviz()["sample_stats"]
    lp = walked.to_arviz(logdensity_fn=logdensity_fn)["sample_stats"]["lp"]
    one = jax.tree.map(lambda leaf: leaf[1, 7], walked.positions)
    assert lp.shape == (4, 100)
    assert float(lp[1, 7]) == pytest.approx(float(logdensity_fn(one)), rel=1e-5)


def test_statistics_have_arviz_s_names(walked):
    found = set(walked.to_arviz()["sample_stats"].data_vars)
    assert {"acceptance_rate", "diverging", "step_size"} <= found
    assert "weights" not in found


def test_weights_are_there_where_they_differ(weighted):
    found = weighted.to_arviz()["sample_stats"]["weights"]
    np.testing.assert_array_equal(found, weighted.weights)


def test_a_summary_is_weighted(weighted):
    found = diagnostics.summary(weighted)
    draws, weights = np.asarray(weighted.positions, float), np.asarray(weighted.weights, float)
    mean = np.average(draws, weights=weights)
    assert found.names == ("x",)
    assert found.mean[0] == pytest.approx(mean)
    assert found.sd[0] == pytest.approx(np.sqrt(np.average((draws - mean) ** 2, weights=weights)))
    assert abs(found.mean[0] - draws.mean()) > 1e-3  # so that it could have been wrong
    order = np.argsort(draws, axis=None)
    reached = np.cumsum(weights.ravel()[order]) / weights.sum()
    median = draws.ravel()[order][np.searchsorted(reached, 0.5)]
    assert found.quantiles[0, 1] == pytest.approx(median)
    for kind in ("bulk", "tail"):
        expected = diagnostics.ess(weighted, kind=kind)["x"]
        assert getattr(found, f"ess_{kind}")[0] == pytest.approx(float(expected))
    assert found.rhat[0] == pytest.approx(float(diagnostics.rhat(weighted)["x"]))


def test_the_effective_size_of_independent_draws_is_that_of_their_weights():
    """Weights 1 and 9 in turn: (Σ w)²/Σ w² is 0.61 of the draws.  To within a fifth, which is seven
    times the spread of the estimate over seeds: false alarm below 1e-6."""
    draws = np.random.default_rng(0).standard_normal((4, 2000))
    weights = np.tile([1.0, 9.0], (4, 1000))
    found = diagnostics.summary(levymc.Result(draws, weights, None))
    expected = weights.sum() ** 2 / np.sum(weights**2)
    assert found.ess_bulk[0] == pytest.approx(expected, rel=0.2)


def test_a_summary_is_arviz_s_where_weights_are_equal(walked):
    found = diagnostics.summary(walked)
    theirs = arviz.summary(walked.to_arviz(), kind="diagnostics", round_to="none")
    assert found.names == ("school[0]", "school[1]", "school[2]", "tau")
    np.testing.assert_allclose(found.ess_bulk, theirs["ess_bulk"].astype(float), rtol=1e-6)
    school = np.asarray(walked.positions["school"], float)
    np.testing.assert_allclose(found.mean[:3], school.mean(axis=(0, 1)))
    np.testing.assert_allclose(found.sd[:3], school.std(axis=(0, 1)))


def test_a_summary_shows_itself(walked):
    found = diagnostics.summary(walked)
    head, *rows = repr(found).splitlines()
    assert " ".join(head.split()) == "mean sd 5 % median 95 % ESS bulk ESS tail R-hat"
    assert [row.split()[0] for row in rows] == list(found.names)
    assert "<td>tau</td>" in found._repr_html_()


def test_few_draws_or_no_arviz_leave_numbers_out(walked, monkeypatch):
    few = diagnostics.summary(np.random.default_rng(0).standard_normal((2, 3)))
    assert np.isnan(few.rhat[0])
    assert np.isfinite(few.mean[0])
    monkeypatch.setitem(__import__("sys").modules, "arviz", None)
    without = diagnostics.summary(walked)
    assert np.all(np.isnan(without.ess_bulk))
    assert np.all(np.isfinite(without.quantiles))


def test_check_and_its_parts_work_with_this_version(walked):
    assert isinstance(str(diagnostics.check(walked)), str)
    sizes = diagnostics.ess(walked, kind="tail")
    assert sizes["school"].shape == (3,)
