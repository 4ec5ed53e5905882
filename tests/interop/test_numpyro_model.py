"""NumPyro's models in pieces: densities, minibatches, names, and what is refused."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc

numpyro = pytest.importorskip("numpyro")
dist = pytest.importorskip("numpyro.distributions")

from tests.interop.numpyro_models import (  # noqa: E402
    SCHOOLS_ERROR,
    SCHOOLS_Y,
    eight_schools,
    mixture,
    mixture_by_labels,
    mixture_data,
    subsampled,
)

from levymc.interop.numpyro import from_numpyro  # noqa: E402

KEY = jax.random.key(0)
X, Y = np.array([-1.0, 0.5, 1.0, 2.0]), np.array([-0.7, 0.1, 0.9, 1.6])


# --- The density ----------------------------------------------------------------------------------


def test_density_has_the_jacobian_and_all_constants():
    pieces = from_numpyro(subsampled, X, Y, 4)
    slope, log_scale = 0.3, -0.4
    found = pieces.logdensity_fn({"slope": jnp.array(slope), "scale": jnp.array(log_scale)})
    scale = np.exp(log_scale)
    expected = dist.Normal(0, 1).log_prob(slope) + dist.HalfNormal(1.0).log_prob(scale) + log_scale
    expected += dist.Normal(slope * X, scale).log_prob(Y).sum()
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_same_model_on_equal_data_is_the_same_object():
    """So that programs are shared; arrays that were changed in place are other data."""
    y = Y.copy()
    first = from_numpyro(subsampled, X, y, 2)
    assert from_numpyro(subsampled, X.copy(), y.copy(), 2) is first
    assert from_numpyro(subsampled, X, y, 3) is not first
    assert from_numpyro(subsampled, X, y.astype(np.float32), 2) is not first
    y[0] = 5.0
    second = from_numpyro(subsampled, X, y, 2)
    position = {"slope": jnp.array(0.1), "scale": jnp.array(0.2)}
    assert first.logdensity_fn(position) != second.logdensity_fn(position)
    np.testing.assert_array_equal(first.sites.observed["y"], Y)


class Study:
    """A model that reads its data from its object."""

    def __init__(self, count):
        self.y = np.zeros(count)

    def model(self):
        numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal()), 1.0), obs=self.y)


def test_data_that_are_no_arguments_are_looked_at_in_every_call():
    """Of so many that the text of a program leaves most of them out."""
    study, position = Study(5000), {"mu": jnp.array(0.5)}
    first = from_numpyro(study.model)
    before = jax.jit(first.logdensity_fn)(position)
    assert from_numpyro(study.model) is first
    study.y[2500] = 3.0
    second = from_numpyro(study.model)
    after = jax.jit(second.logdensity_fn)(position)
    np.testing.assert_allclose(after - before, (0.5**2 - 2.5**2) / 2, rtol=1e-8)
    assert second.sites.observed["y"][2500] == 3.0
    study.y = np.zeros(5000)
    assert from_numpyro(study.model) is first


def test_all_that_a_model_reads_tells_it_from_another():
    """Numbers, also where the density does not depend on them, sizes of minibatches and names."""
    read = {"y": 1.0, "factor": 2.0, "rows": 2, "plate": "row"}

    def model():
        slope = numpyro.sample("slope", dist.Normal())
        numpyro.deterministic("scaled", read["factor"] * slope)
        with numpyro.plate(read["plate"], 4, subsample_size=read["rows"]):
            numpyro.sample("y", dist.Normal(slope, 1.0), obs=read["y"])

    first = from_numpyro(model)
    for name, other in {"y": 1.5, "factor": 3.0, "rows": 3, "plate": "column"}.items():
        kept = read[name]
        read[name] = other
        assert from_numpyro(model) is not first, name
        read[name] = kept
        assert from_numpyro(model) is first, name


def test_models_that_call_back_to_python_are_taken_as_they_are():
    """A program does not show what they compute."""

    def model():
        mu = numpyro.sample("mu", dist.Normal())
        shape = jax.ShapeDtypeStruct((), mu.dtype)
        numpyro.factor("f", jax.pure_callback(lambda value: -(value**2), shape, mu))

    assert from_numpyro(model) is not from_numpyro(model)


def test_arguments_that_cannot_be_compared_are_taken_as_they_are():
    class Data:
        y = Y

    def model(data):
        numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal()), 1), obs=data.y)

    data = Data()
    assert from_numpyro(model, data) is not from_numpyro(model, data)


def test_masked_data_are_not_taken_for_what_is_below_the_mask():
    y = np.ma.masked_array([1.0, 99.0], [False, True])
    position = {"mu": jnp.array(0.5)}

    def model(y):
        numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal()), 1.0), obs=y)

    with pytest.raises(ValueError, match="masked arrays are not supported"):
        from_numpyro(model, y).logdensity_fn(position)

    def knowing(y):
        law = dist.Normal(numpyro.sample("mu", dist.Normal()), 1.0)
        numpyro.sample("y", law.mask(~y.mask), obs=y.filled(0.0))

    found = from_numpyro(knowing, y).logdensity_fn(position)
    np.testing.assert_allclose(found, from_numpyro(model, 1.0).logdensity_fn(position), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.often("float32")
def test_starts_are_finite_and_constraints_hold(dtype):
    with jax.enable_x64(dtype == np.float64):
        pieces = from_numpyro(mixture, mixture_data(10).astype(dtype))
        starts = pieces.initial_positions(KEY, 3)
        assert {name: leaf.shape for name, leaf in starts.items()} == {
            "weights": (3, 1),  # a simplex has a coordinate less
            "loc": (3, 2),
            "scale": (3,),
        }
        assert {leaf.dtype for leaf in starts.values()} == {np.dtype(dtype)}
        found = pieces.constrain(jax.tree.map(lambda leaf: leaf[:, None], starts))
    assert found["weights"].shape == (3, 1, 2)
    np.testing.assert_allclose(found["weights"].sum(-1), 1.0, rtol=1e-6)
    assert np.all(found["scale"] > 0)


def test_starts_where_there_are_none_name_the_site():
    def model(y):
        numpyro.sample("rate", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Exponential(1.0, validate_args=False), obs=y)
        numpyro.factor("never", jnp.where(y > 0, 0.0, -jnp.inf))

    with pytest.raises(ValueError, match=r"finite log density.*'never': -inf"):
        from_numpyro(model, -1.0).initial_positions(KEY, 2)


def test_positions_of_another_model_are_refused():
    with pytest.raises(ValueError, match=r"must have the latent sites \['slope', 'scale'\]"):
        from_numpyro(subsampled, X, Y, 2).constrain({"x": jnp.zeros(3)})


# --- Names ----------------------------------------------------------------------------------------


def test_plates_are_dims():
    pieces = from_numpyro(eight_schools, SCHOOLS_ERROR, y=SCHOOLS_Y)
    assert pieces.dims["theta"] == pieces.dims["z"] == pieces.dims["y"] == ("school",)
    assert pieces.dims["mu"] == ()
    np.testing.assert_array_equal(pieces.sites.observed["y"], SCHOOLS_Y)


def test_dims_of_nested_plates_events_and_clashing_names():
    def model():
        with numpyro.plate("row", 3, dim=-2):
            numpyro.sample("a", dist.Normal())
            with numpyro.plate("column", 2, dim=-1):
                numpyro.sample("b", dist.Normal(jnp.zeros(4), 1.0).to_event(1))
        with numpyro.plate("draw", 5):
            numpyro.sample("c", dist.Normal())
        numpyro.sample("d", dist.Dirichlet(jnp.ones(3)), infer={"event_dims": ["share"]})
        numpyro.deterministic("e", jnp.zeros((2, 2)))

    dims = from_numpyro(model).dims
    assert dims["a"] == ("row", "a_dim_1")
    assert dims["b"] == ("row", "column", "b_dim_2")
    assert dims["c"] == ("draw_plate",)
    assert dims["d"] == ("share",)
    assert dims["e"] == ("e_dim_0", "e_dim_1")


def test_names_that_would_lose_draws_are_not_names_of_axes():
    """xarray fills the shorter of two axes of a name with NaN, and drops a variable called so."""

    def model():
        with numpyro.plate("row", 2):
            numpyro.sample("a", dist.Normal())
        with numpyro.plate("row", 3):
            numpyro.sample("b", dist.Normal())
        numpyro.sample("share", dist.Normal())
        for name in ("share", "draw"):
            law = dist.Dirichlet(jnp.ones(3))
            numpyro.sample(f"by_{name}", law, infer={"event_dims": [name]})

    dims = from_numpyro(model).dims
    expected = {name: (f"{name}_dim_0",) for name in ("a", "b", "by_share", "by_draw")}
    assert dims == expected | {"share": ()}


# --- Minibatches ----------------------------------------------------------------------------------


def mean_gradient(pieces, position, choices):
    found = [pieces.grad_estimator(position, choice) for choice in choices]
    return jax.tree.map(lambda *parts: sum(parts) / len(parts), *found)


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.often("True")
def test_minibatch_gradient_is_unbiased(replace):
    """Its mean over all minibatches is the gradient on all data, to rounding."""
    pieces = from_numpyro(subsampled, X, Y, 2)
    position = {"slope": jnp.array(0.3), "scale": jnp.array(-0.2)}
    rows = itertools.product(range(4), repeat=2) if replace else itertools.permutations(range(4), 2)
    mean = mean_gradient(pieces, position, [jnp.array(pair) for pair in rows])
    whole = jax.grad(from_numpyro(subsampled, X, Y, 4).logdensity_fn)(position)
    assert jax.tree.map(jnp.shape, mean) == jax.tree.map(jnp.shape, whole)
    for name, leaf in whole.items():
        np.testing.assert_allclose(mean[name], leaf, rtol=1e-10)
    np.testing.assert_allclose(jax.grad(pieces.logdensity_fn)(position)["slope"], whole["slope"])


def crossed(y, sizes):
    mu = numpyro.sample("mu", dist.Normal())
    with (
        numpyro.plate("row", 3, subsample_size=sizes[0], dim=-2) as rows,
        numpyro.plate("column", 4, subsample_size=sizes[1], dim=-1) as columns,
    ):
        numpyro.sample("y", dist.Normal(mu, 1.0), obs=y[rows[:, None], columns])


def test_minibatch_gradient_of_two_plates():
    y = np.arange(12.0).reshape(3, 4)
    pieces, position = from_numpyro(crossed, y, (2, 1)), {"mu": jnp.array(0.5)}
    choices = [
        {"row": jnp.array(rows), "column": jnp.array([column])}
        for rows in itertools.product(range(3), repeat=2)
        for column in range(4)
    ]
    mean = mean_gradient(pieces, position, choices)["mu"]
    np.testing.assert_allclose(mean, jax.grad(pieces.logdensity_fn)(position)["mu"], rtol=1e-10)
    first, again = pieces.minibatches(3), pieces.minibatches(3)
    assert {name: rows.shape for name, rows in first.items()} == {"row": (2,), "column": (1,)}
    assert all(np.array_equal(first[name], again[name]) for name in first)
    drawn = np.concatenate([pieces.minibatches(step)["row"] for step in range(100)])
    assert set(drawn) == {0, 1, 2}


def test_sgld_runs_on_minibatches():
    """The mean slope of 64 chains at their last step.

    The posterior's standard deviation is 0.07, with the gradient's noise below 0.1 at this step:
    0.1 is more than eight standard errors of the mean, for a false-alarm rate below 1e-12.  Rows
    that are not scaled up to all data shrink the slope by 0.05 at most, but spread it tenfold.
    """
    rng = np.random.default_rng(3)
    x = rng.normal(size=200)
    pieces = from_numpyro(subsampled, x, 0.8 * x + rng.normal(size=200), 20)
    starts = {name: jnp.zeros(64) for name in pieces.names}
    sgld = levymc.sgld(pieces.grad_estimator, 1e-3)
    how = {"minibatches": pieces.minibatches, "progress": False}
    run = levymc.sample(sgld, KEY, starts, 500, **how)
    final = pieces.constrain(run.positions)
    best = float(x @ pieces.sites.observed["y"] / (x @ x + 1))
    assert abs(final["slope"][:, -1].mean() - best) < 0.1
    assert final["slope"][:, -1].std() < 0.2


def test_minibatches_that_cannot_be_are_refused():
    def local(y):
        with numpyro.plate("rows", 4, subsample_size=2) as rows:
            z = numpyro.sample("z", dist.Normal())
            numpyro.sample("y", dist.Normal(z, 1.0), obs=y[rows])

    assert from_numpyro(local, Y).sites.latent["z"].shape == (4,)
    with pytest.raises(ValueError, match=r"no latent site inside .* got \['z'\]"):
        _ = from_numpyro(local, Y).grad_estimator
    with pytest.raises(ValueError, match="a subsample_size"):
        _ = from_numpyro(subsampled, X, Y, 4).minibatches


# --- Discrete sites -------------------------------------------------------------------------------


def test_discrete_sites_are_summed_out():
    pytest.importorskip("funsor")
    y = mixture_data(10)
    summed, direct = from_numpyro(mixture_by_labels, y), from_numpyro(mixture, y)
    start = jax.tree.map(lambda leaf: leaf[0], direct.initial_positions(KEY, 1))
    expected = jax.jit(direct.logdensity_fn)(start)
    np.testing.assert_allclose(jax.jit(summed.logdensity_fn)(start), expected, rtol=1e-10)
    assert "label" not in {*summed.names, *summed.dims, *summed.constrain(start)}
    assert from_numpyro(mixture_by_labels, y) is summed


def test_discrete_sites_without_funsor_say_what_is_missing(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"\['label'\] needs funsor: pip install funsor"):
        from_numpyro(mixture_by_labels, mixture_data(9))


def test_what_depends_on_a_summed_site_is_left_out_and_said():
    pytest.importorskip("funsor")

    def model():
        loc = numpyro.sample("loc", dist.Normal(jnp.zeros(2), 1.0).to_event(1))
        label = numpyro.sample("label", dist.Bernoulli(0.3), infer={"enumerate": "parallel"})
        numpyro.deterministic("chosen", jnp.where(label == 1, loc[1], loc[0]))
        numpyro.deterministic("between", loc.mean())

    with pytest.warns(UserWarning, match=r"\['chosen'\] depend on the discrete sites \['label'\]"):
        pieces = from_numpyro(model)
    assert set(pieces.constrain({"loc": jnp.ones((3, 2))})) == {"loc", "between"}


# --- Imputed values -------------------------------------------------------------------------------

SEEN = np.array([True, False, True, True])


def test_discrete_values_that_stand_for_data_do_not_count():
    pytest.importorskip("funsor")

    def model(y, seen):
        rate = numpyro.sample("rate", dist.Beta(1.0, 1.0))
        with numpyro.plate("row", len(y)):
            numpyro.sample("y", dist.Bernoulli(rate), obs=y, obs_mask=seen)

    seen = jnp.array([True, True, True, False])
    with pytest.warns(UserWarning, match=r"\['y'\] depend on the discrete"):
        pieces = from_numpyro(model, jnp.array([1, 0, 1, 1]), seen)
    found = pieces.logdensity_fn({"rate": jnp.array(0.0)})
    np.testing.assert_allclose(found, 3 * np.log(0.5) + np.log(0.25), rtol=1e-12)


def test_continuous_values_that_stand_for_data_integrate_to_one():
    """Over both rows, the density at a mean is that of its prior and of the row that is there."""

    def model(y, seen):
        mu = numpyro.sample("mu", dist.Normal())
        with numpyro.plate("row", len(y)):
            numpyro.sample("y", dist.Normal(mu, 1.5), obs=y, obs_mask=seen)

    pieces = from_numpyro(model, Y[:2], SEEN[:2])
    assert pieces.sites.loose.improper == ()
    grid = jnp.linspace(-15.0, 15.0, 121)
    rows = jnp.stack(jnp.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    at_rows = jax.vmap(lambda row: pieces.logdensity_fn({"mu": 0.3, "y_unobserved": row}))
    found = jax.scipy.special.logsumexp(jax.jit(at_rows)(rows)) + 2 * jnp.log(grid[1] - grid[0])
    expected = dist.Normal().log_prob(0.3) + dist.Normal(0.3, 1.5).log_prob(Y[0])
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_other_masks_of_what_is_imputed_are_kept():
    """That of the law, on the second row, and that of a handler, on the last."""
    own, outer = np.array([True, False, True, True]), np.array([True, True, True, False])

    def model(y):
        with numpyro.handlers.mask(mask=outer), numpyro.plate("row", 4):
            numpyro.sample("y", dist.Normal().mask(own), obs=y, obs_mask=SEEN)

    pieces = from_numpyro(model, Y)
    assert pieces.sites.loose.improper == ("y_unobserved",)
    row = jnp.array([0.1, 0.2, 0.3, 0.4])
    terms = dist.Normal().log_prob(jnp.stack([jnp.asarray(Y), row]))
    kept = np.stack([SEEN & own & outer, own & outer])
    np.testing.assert_allclose(pieces.logdensity_fn({"y_unobserved": row}), terms[kept].sum())


def test_sites_that_are_named_like_imputed_ones_keep_their_masks():
    def model(y):
        law = dist.Normal()
        with numpyro.handlers.mask(mask=SEEN):
            numpyro.sample("y_observed", law, obs=y)
            numpyro.sample("y_unobserved", law.expand([4]))
        numpyro.sample("z_observed", dist.Normal().expand([4]).mask(SEEN), obs=y)
        numpyro.sample("z_unobserved", dist.Normal().expand([4]).mask(~SEEN))

    pieces = from_numpyro(model, Y)
    assert pieces.sites.loose.improper == ("y_unobserved", "z_unobserved")


# --- What is refused ------------------------------------------------------------------------------


def poisson():
    count = numpyro.sample("count", dist.Poisson(3.0))
    numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal()) + count, 1.0), obs=2.0)


def parameter():
    numpyro.sample("x", dist.Normal(numpyro.param("loc", 0.0), 1.0))


def sequential():
    numpyro.sample("x", dist.Bernoulli(0.5), infer={"enumerate": "sequential"})


def delta():
    numpyro.sample("x", dist.Delta(1.0))


def deltas():
    with numpyro.plate("row", 2):
        numpyro.sample("x", dist.Delta(jnp.ones(3)).to_event(1))


def nothing():
    numpyro.sample("x", dist.Normal(), obs=1.0)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (poisson, r"'count' of a Poisson law: it can be neither moved .*numpyro.infer.CustomGibbs"),
        (parameter, r"the numpyro.param 'loc', which has none. Make it a numpyro.sample"),
        (sequential, r"marked as 'sequential'. Mark it by infer={'enumerate': 'parallel'}"),
        (delta, r"'x' of a Delta law, which has none. Name a value by numpyro.deterministic"),
        (deltas, r"'x' of a Delta law, which has none. Name a value by numpyro.deterministic"),
        (nothing, r"must have a continuous latent site, got none"),
    ],
)
def test_what_cannot_be_sampled_is_refused_with_a_remedy(model, message):
    with pytest.raises(ValueError, match=message):
        from_numpyro(model)


def test_the_remedy_for_a_parameter_works():
    fixed = numpyro.handlers.block(
        numpyro.handlers.substitute(parameter, data={"loc": 3.0}), hide=["loc"]
    )
    found = from_numpyro(fixed).logdensity_fn({"x": jnp.array(3.0)})
    np.testing.assert_allclose(found, dist.Normal(3.0, 1.0).log_prob(3.0))


def test_a_model_that_is_no_function_is_refused():
    with pytest.raises(TypeError, match=r"must be a function with numpyro.sample in it, got 3"):
        from_numpyro(3)


def test_improper_priors_are_known():
    def model():
        numpyro.sample("flat", dist.ImproperUniform(dist.constraints.real, (), (2,)))
        numpyro.sample("masked", dist.Normal().mask(False))
        numpyro.sample("proper", dist.Normal().expand([2]).to_event(1).mask(True))

    assert from_numpyro(model).sites.loose.improper == ("flat", "masked")


def test_what_does_not_integrate_to_one_is_known():
    pytest.importorskip("funsor")

    def model(y):
        with numpyro.handlers.scale(scale=2.0):
            x = numpyro.sample("x", dist.Normal())
            numpyro.sample("scaled", dist.Normal(x, 1.0), obs=1.0)
            numpyro.factor("also_scaled", x)
        with numpyro.handlers.scale(scale=1.0), numpyro.plate("row", 4, subsample_size=2):
            numpyro.sample("as_it_is", dist.Normal(x, 1.0), obs=1.0)
            numpyro.factor("of_rows", -(x**2))
        numpyro.sample("counted", dist.Bernoulli(0.3).mask(False))

    found = from_numpyro(model, Y).sites.loose
    assert found.improper == ()
    assert found.unnormalised == ("x", "counted")
    assert found.factors == ("also_scaled", "of_rows")
    assert found.scaled == ("scaled",)
