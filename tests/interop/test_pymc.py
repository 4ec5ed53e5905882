"""PyMC models through `levymc.interop.pymc`, against PyMC itself and laws that are known."""

import inspect
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats
from tests.interop import pymc_models

import levymc
from levymc.interop._evidence import Loose
from levymc.interop.pymc import _loose, from_pymc, sample

pm = pytest.importorskip("pymc")
pytensor = pytest.importorskip("pytensor")

# PyTensor warns where it has no BLAS, which none of these models is slow without.
pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning")


@pytest.fixture(autouse=True, scope="module")
def quick_pytensor():
    """PyMC's side of each comparison in plain Python: compiling it takes longer."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


@pytest.fixture(scope="module")
def conjugate():
    return pymc_models.conjugate()


@pytest.fixture(scope="module")
def fit(conjugate):
    """A run where JAX has 32 bits, as it has unless told otherwise."""
    with jax.enable_x64(False):
        return sample(conjugate, jax.random.key(0), budget=6000, progress=False)


def flat_model():
    """One of each kind of variable that has a transform of its own."""
    transforms = pm.distributions.transforms
    with pm.Model() as model:
        pm.Dirichlet("share", np.ones(3))
        pm.Normal("sorted", shape=2, transform=transforms.ordered, initval=[0.0, 1.0])
        pm.LKJCholeskyCov("scale", n=2, eta=1.0, sd_dist=pm.HalfNormal.dist(1.0, size=2))
        pm.Uniform("level", 0.0, 1.0)
        pm.ZeroSumNormal("contrast", shape=3)
        pm.Potential("extra", -pm.math.sqr(model["level"]))
    return model


def point_of(position, place=()):
    """A position as PyMC takes it; of several, the one at a place."""
    return {name: np.asarray(leaf)[place] for name, leaf in position.items()}


@pytest.mark.parametrize("make", [pymc_models.conjugate, pymc_models.eight_schools, flat_model])
@pytest.mark.often("conjugate")
def test_density_is_that_of_pymc_with_its_jacobian(make):
    model = make()
    pieces = from_pymc(model)
    theirs = model.compile_logp()
    with pieces.precision():
        starts = pieces.initial_positions(jax.random.key(0), 3)
        ours = jax.jit(jax.vmap(pieces.logdensity_fn))(starts)
        expected = [theirs(point_of(starts, n)) for n in range(3)]
    np.testing.assert_allclose(ours, expected, rtol=1e-12)


def test_constrained_variables_are_those_of_pymc():
    model = flat_model()
    pieces = from_pymc(model)
    with pieces.precision():
        starts = pieces.initial_positions(jax.random.key(0), 6)
        grid = jax.tree.map(lambda leaf: leaf.reshape(2, 3, *leaf.shape[1:]), starts)
        found = pieces.constrain(grid)
        one = pieces.constrain(point_of(starts, 4))
    expected = model.compile_fn(model.unobserved_value_vars)(point_of(starts, 4))
    for var, value in zip(model.unobserved_value_vars, expected, strict=True):
        if var.name in found:
            np.testing.assert_allclose(found[var.name][1, 1], value, rtol=1e-12)
            np.testing.assert_allclose(one[var.name], value, rtol=1e-12)
    assert {"share", "sorted", "scale", "scale_corr", "level", "contrast"} <= set(found)
    assert not any(name.endswith("__") for name in found)


def test_a_parameter_out_of_bounds_is_impossible():
    """PyMC's own functions for JAX give -10.6 here."""
    with pm.Model() as model:
        shape = pm.Normal("shape", 2.0, 1.0)
        pm.Gamma("y", shape, 1.0, observed=np.array([1.0, 2.0]))
    outside = {"shape": jnp.asarray(-0.5)}
    assert from_pymc(model).logdensity_fn(outside) == -np.inf
    assert model.compile_logp()(point_of(outside)) == -np.inf


def test_bounds_are_not_checked_where_the_model_says_so():
    with pm.Model(check_bounds=False) as model:
        shape = pm.Normal("shape", 2.0, 1.0)
        pm.Gamma("y", shape, 1.0, observed=np.array([1.0, 2.0]))
    assert np.isfinite(from_pymc(model).logdensity_fn({"shape": jnp.asarray(-0.5)}))


def test_one_chain_keeps_its_axis(conjugate):
    pieces = from_pymc(conjugate)
    starts = pieces.initial_positions(jax.random.key(0), 1)
    assert {name: leaf.shape for name, leaf in starts.items()} == {
        "rate_logodds__": (1,),
        "x": (1,),
    }


def test_starts_depend_on_the_key_and_differ(conjugate):
    pieces = from_pymc(conjugate)
    first, same, other = (pieces.initial_positions(jax.random.key(n), 2)["x"] for n in (0, 0, 1))
    assert np.array_equal(first, same)
    assert len({*np.asarray(first).tolist(), *np.asarray(other).tolist()}) == 4


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.often("32")
def test_pieces_have_the_precision_of_jax(conjugate, bits):
    pieces = from_pymc(conjugate)
    with jax.enable_x64(bits == 64):
        start = jax.tree.map(lambda leaf: leaf[0], pieces.initial_positions(jax.random.key(0), 1))
        value = jax.jit(pieces.logdensity_fn)(start)
        assert {leaf.dtype for leaf in start.values()} == {jnp.dtype(f"float{bits}")}
        assert value.dtype == jnp.dtype(f"float{bits}")
        assert pieces.constrain(start)["rate"].dtype == np.dtype(f"float{bits}")
    exact = conjugate.compile_logp()(point_of(start))
    np.testing.assert_allclose(value, exact, rtol=1e-5 if bits == 32 else 1e-13)


def test_data_of_64_bits_are_kept_where_jax_began_with_32():
    """Constants are made for each precision: those of float32 would be off by 1e-9 here."""
    data = np.array([0.1, 0.7])
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("x"), 1.0, observed=data)
    with jax.enable_x64(False):
        pieces = from_pymc(model)
        pieces.logdensity_fn({"x": jnp.asarray(0.0)})
    with jax.enable_x64(True):
        value = pieces.logdensity_fn({"x": jnp.asarray(0.0)})
    exact = stats.norm.logpdf(0.0) + stats.norm.logpdf(data).sum()
    np.testing.assert_allclose(value, exact, rtol=1e-14)


def test_a_model_of_float32_stays_so():
    with pytensor.config.change_flags(floatX="float32"):
        with pm.Model() as model:
            pm.Normal("y", 0.0, pm.HalfNormal("s"), observed=np.ones(3, np.float32))
        pieces = from_pymc(model)
        with pieces.precision(), jax.enable_x64(True):
            start = pieces.initial_positions(jax.random.key(0), 1)
            value = pieces.logdensity_fn({"s_log__": start["s_log__"][0]})
    assert start["s_log__"].dtype == value.dtype == jnp.float32


# What is refused.


def discrete():
    with pm.Model() as model:
        pm.Normal("x", pm.Poisson("count", 3.0))
    return model


def minibatched():
    with pm.Model() as model:
        batch = pm.Minibatch(np.ones(100), batch_size=10)
        pm.Normal("y", pm.Normal("x"), 1.0, observed=batch, total_size=100)
    return model


def observed_only():
    with pm.Model() as model:
        pm.Normal("y", 0.0, 1.0, observed=1.0)
    return model


class Untranslated(pytensor.graph.op.Op):
    """Without a counterpart in JAX."""

    def make_node(self, x):
        tensor = pytensor.tensor
        return pytensor.graph.basic.Apply(self, [tensor.as_tensor(x)], [tensor.dscalar()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0]


def untranslated():
    with pm.Model() as model:
        pm.Potential("odd", Untranslated()(pm.Normal("x")))
    return model


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (discrete, TypeError, "discrete ones: count"),
        (minibatched, ValueError, "Give it all of the data"),
        (observed_only, ValueError, "must have free variables"),
        (untranslated, NotImplementedError, "Untranslated"),
        (lambda: "a model", TypeError, "must be a pm.Model, got str"),
    ],
)
def test_what_cannot_be_sampled_is_refused_with_a_reason(make, kind, message):
    model = make()
    with pytest.raises(kind, match=message):
        from_pymc(model)
    with pytest.raises(kind, match=message):
        sample(model, jax.random.key(0))


def test_a_model_without_a_finite_start_is_refused():
    with pm.Model() as model:
        pm.Potential("never", pm.Normal("x") * 0 - np.inf)
    with pytest.raises(ValueError, match=r"finite log density where it starts.*initval"):
        from_pymc(model).initial_positions(jax.random.key(0), 1)


def test_other_variables_than_the_model_has_are_refused(conjugate):
    with pytest.raises(ValueError, match=r"\['rate_logodds__', 'x'\], got \['rate', 'x'\]"):
        from_pymc(conjugate).logdensity_fn({"rate": 0.5, "x": 0.0})


def test_pieces_do_not_outlive_their_data():
    model = pymc_models.conjugate()
    pieces = from_pymc(model)
    start = {"rate_logodds__": jnp.asarray(0.0), "x": jnp.asarray(1.0)}
    with model:
        pm.set_data({"numbers": np.array([0.5, 1.0, 4.0])})
    for call in (
        lambda: pieces.logdensity_fn(start),
        lambda: pieces.constrain(start),
        lambda: pieces.initial_positions(jax.random.key(0), 1),
    ):
        with pytest.raises(ValueError, match=r"others for numbers.*from_pymc\(model\) again"):
            call()
    value = from_pymc(model).logdensity_fn(start)
    np.testing.assert_allclose(value, model.compile_logp()(point_of(start)), rtol=1e-12)


def test_missing_pymc_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymc", None)
    with pytest.raises(ImportError, match=r"levymc\[pymc\]"):
        from_pymc(None)


# JAX's settings.


SETTINGS = """
import os, sys
import jax
import levymc
assert "pymc" not in sys.modules
import pymc as pm
with pm.Model() as model:
    pm.Normal("x")
with jax.enable_x64(True):
    levymc.interop.pymc.from_pymc(model)
    assert jax.config.jax_enable_x64
assert "pymc.sampling.jax" in sys.modules
print(jax.config.jax_enable_x64, os.environ.get("XLA_FLAGS"), jax.device_count())
"""


@pytest.mark.nightly
def test_settings_of_jax_are_as_before():
    """Loading PyMC's backend by itself leaves 64 bits for everyone, and 100 devices."""
    plain = {"JAX_ENABLE_X64": "0", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run(
        [sys.executable, "-c", SETTINGS],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | plain,
    )
    assert done.stdout.split() == ["False", plain["XLA_FLAGS"], "2"], done.stderr


# A run.


@pytest.mark.nightly
def test_evidence_is_the_marginal_likelihood(fit):
    """Both parts are known in closed form.

    The estimate's standard error, of 8 systems, is about 0.01, so that 0.15 is met by chance with
    probability below 1e-6 (normal law); a forgotten Jacobian or constant, log 2 or more, is seen.
    """
    hits = special.gammaln([11, 8, 4]) @ [1, -1, -1] + special.betaln(9, 6) - special.betaln(2, 3)
    covariance = np.eye(3) + 4.0
    numbers = stats.multivariate_normal(np.zeros(3), covariance).logpdf([0.5, 1.0, 3.0])
    assert fit.log_evidence.standard_error < 0.025
    assert abs(fit.log_evidence.value - hits - numbers) < 0.15


def test_improper_priors_have_no_evidence():
    with pm.Model() as model:
        pm.Normal("y", pm.Flat("x"), 1.0, observed=np.array([0.3, 1.1]))
    flat = sample(model, jax.random.key(0), budget=4000, progress=False)
    assert np.isnan(flat.log_evidence.value)
    assert "none, as the prior of 'x' is improper" in flat.report
    assert abs(flat.posterior["x"].mean() - 0.7) < 0.2  # five standard errors of 400 draws


def test_what_does_not_integrate_to_one_is_known(conjugate):
    with pm.Model() as model:
        x = pm.Flat("x", shape=2)
        pm.HalfFlat("scale")
        pm.ICAR("map", W=np.array([[0, 1], [1, 0]]))
        pm.Normal("all", 0.0, 1.0, observed=np.zeros(3))
        pm.Normal("some", 0.0, 1.0, observed=np.zeros(3), total_size=9)
        pm.Flat("seen", observed=1.0)
        pm.Potential("extra", -pm.math.sum(x**2))
    assert _loose(pm, model) == Loose(("x", "scale"), ("map",), ("extra",), ("some",))
    assert _loose(pm, conjugate) == Loose()


@pytest.mark.filterwarnings("ignore:Scan return signature:DeprecationWarning")  # of pm.Truncated
def test_laws_made_of_improper_ones_are_known():
    flat = pm.Flat.dist()
    with pm.Model() as model:
        start = pm.Flat("start")
        pm.Normal("above", start, 1.0)
        pm.GaussianRandomWalk("walk", 0.0, 1.0, init_dist=flat, steps=2)
        pm.Truncated("cut", flat, lower=0.0)
        pm.Mixture("either", [0.5, 0.5], [pm.Normal.dist(), flat])
    assert _loose(pm, model) == Loose(("start", "walk", "cut", "either"))


OF_PYMC = {  # laws in one unknown, where they are looked at, and their integrals
    "LKJCorr": (lambda: pm.LKJCorr("x", n=2, eta=2.0), 30.0, (4 / 3) ** 2),
    "VonMises": (lambda: pm.VonMises("x", 0.0, 2.0), 9 * np.pi, 9.0),
}


@pytest.mark.parametrize("name", OF_PYMC)
def test_densities_that_pymc_does_not_normalise(name):
    """Where this fails PyMC has put the law right, and it may have an evidence."""
    make, reach, expected = OF_PYMC[name]
    with pm.Model() as model:
        make()
    pieces, grid = from_pymc(model), np.linspace(-reach, reach, 1001)
    (var,) = model.value_vars
    shape = (1,) * var.type.ndim
    with pieces.precision():
        density = jax.jit(
            jax.vmap(lambda u: jnp.exp(pieces.logdensity_fn({var.name: jnp.full(shape, u)})))
        )
        integral = np.trapezoid(density(jnp.asarray(grid)), grid)
    np.testing.assert_allclose(integral, expected, rtol=1e-6)


def test_what_pymc_does_not_normalise_has_no_evidence():
    with pm.Model() as model:
        pm.VonMises("angle", 0.0, 2.0)
        pm.LKJCorr("correlation", n=2, eta=2.0)
        pm.LKJCholeskyCov("covariance", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0, size=2))
        pm.CAR("map", np.zeros(2), W=np.array([[0, 1], [1, 0]]), alpha=0.5, tau=1.0)
    unnormalised = ("correlation", "covariance", "map")
    assert _loose(pm, model) == Loose(("angle",), unnormalised)


@pytest.mark.parametrize(
    ("dims", "lost"), [({"b": ["x"]}, "x"), ({"b": ["row"], "c": ["row"]}, "b")]
)
def test_names_of_axes_that_would_lose_draws_are_refused(dims, lost):
    """PyMC allows a variable called as an axis of another, and ArviZ then drops it."""
    pytest.importorskip("arviz")
    posterior = {"x": np.zeros((4, 9)), "b": np.zeros((4, 9, 2)), "c": np.zeros((4, 9, 3))}
    with pytest.raises(ValueError, match=f"would drop or fill up {lost}. Rename the axis"):
        levymc.run.to_groups({"posterior": posterior}, dims, {}, {})


def test_draws_follow_the_posterior(fit):
    """Beta(9, 6) and N(18/13, 4/13): shares of draws below five quantiles of each.

    6 standard errors, from effective sample sizes: false alarms below 1e-7 for the ten of them, as
    far as the normal law holds; with some 500 effective draws 0.13 of probability is seen.
    """
    laws = {"rate": stats.beta(9, 6), "x": stats.norm(18 / 13, np.sqrt(4 / 13))}
    for name, law in laws.items():
        for level in pymc_models.LEVELS:
            below = fit.posterior[name] < law.ppf(level)
            assert pymc_models.from_value(below, level) < 6


def test_result_forwards_what_auto_found(fit):
    assert isinstance(fit.result, levymc.adapt.AutoResult)
    assert fit.report == fit.result.report
    assert fit.warnings == fit.result.warnings
    assert fit.is_flagged == bool(fit.warnings)
    assert fit.log_evidence is fit.result.log_evidence
    assert fit.modes.num_modes == 1
    assert set(fit.modes.location) == {"rate", "x", "both"}
    assert 0 < fit.modes.location["rate"][0] < 1
    assert "rate" in repr(fit)


def test_arviz_has_names_dims_coords_and_data(fit, conjugate):
    data = fit.to_arviz()
    posterior = data.posterior
    assert set(posterior.data_vars) == {"rate", "x", "both"}
    assert posterior["both"].dims == ("chain", "draw", "way")
    assert posterior["way"].values.tolist() == ["there", "back"]
    np.testing.assert_array_equal(posterior["both"].sel(way="there"), posterior["x"])
    assert data.observed_data["y"].dims == ("number",)
    assert data.observed_data["hits"].item() == 7
    stats_of = data.sample_stats
    assert {"lp", "diverging", "acceptance_rate"} <= set(stats_of.data_vars)
    position = {name: leaf[1, 2] for name, leaf in fit.result.positions.items()}
    expected = conjugate.compile_logp()(point_of(position))
    np.testing.assert_allclose(stats_of["lp"].values[1, 2], expected, rtol=1e-12)


def test_draws_have_the_64_bits_of_the_model(fit):
    leaves = [*fit.posterior.values(), *fit.result.positions.values()]
    assert {leaf.dtype for leaf in leaves} == {np.dtype("float64")}


def test_pymc_has_no_open_interface_for_samplers_yet():
    """`pm.sample` takes the names of three libraries, and no object of another.

    If this fails, PyMC has the interface that pymc #8353 and #8358 propose: offer it one.
    """
    parameters = inspect.signature(pm.sample).parameters
    assert not {"sampler", "external_sampler"} & set(parameters)
    assert not hasattr(pm, "external")
