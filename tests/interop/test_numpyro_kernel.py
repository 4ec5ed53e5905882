"""levymc's algorithms in numpyro.infer.MCMC and Gibbs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc

numpyro = pytest.importorskip("numpyro")
dist = pytest.importorskip("numpyro.distributions")

from numpyro.infer import MCMC, CustomGibbs, DiscreteGibbs, Gibbs  # noqa: E402

from levymc.interop.numpyro import Kernel  # noqa: E402

KEY = jax.random.key(7)
X, Y = np.array([-1.0, 0.5, 1.0, 2.0]), np.array([-0.7, 0.1, 0.9, 1.6])


def model(x, y):
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    scale = numpyro.sample("scale", dist.Uniform(0.2, 2.0))
    numpyro.deterministic("double", 2 * slope)
    with numpyro.plate("rows", len(y)):
        numpyro.sample("y", dist.Normal(slope * x, scale), obs=y)


def by_mafla(logdensity_fn):
    return levymc.mafla(logdensity_fn, 0.3)


def run(kernel, *args, count=50, chains=1, method="sequential", warmup=10, key=KEY, **options):
    mcmc = MCMC(
        kernel,
        num_warmup=warmup,
        num_samples=count,
        num_chains=chains,
        chain_method=method,
        progress_bar=False,
    )
    mcmc.run(key, *args, **options)
    return mcmc


def test_one_chain_is_what_the_algorithm_makes_with_its_keys():
    fields = ("z.slope", "z.scale", "accept_prob", "rng_key")
    mcmc = run(Kernel(model, by_mafla), X, Y, key=jax.random.PRNGKey(7), extra_fields=fields)
    found, fields = mcmc.get_samples(), mcmc.get_extra_fields()
    assert set(found) == {"slope", "scale", "double"}
    np.testing.assert_allclose(found["double"], 2 * found["slope"])
    assert np.all((found["scale"] > 0.2) & (found["scale"] < 2.0))
    pieces = levymc.interop.numpyro.from_numpyro(model, X, Y)
    algorithm = by_mafla(pieces.logdensity_fn)
    at = {name: fields[f"z.{name}"][3] for name in pieces.names}
    key_step, key_chain = jax.random.split(fields["rng_key"][3])
    state, info = algorithm.step(key_step, algorithm.init(at))
    np.testing.assert_allclose(pieces.constrain(state.position)["scale"], found["scale"][4])
    np.testing.assert_allclose(info.acceptance_rate, fields["accept_prob"][4], rtol=1e-6)
    assert jnp.array_equal(key_chain, fields["rng_key"][4])
    assert fields["diverging"].shape == (50,)


@pytest.mark.nightly
def test_vectorized_chains_are_the_sequential_ones():
    one = run(Kernel(model, by_mafla), X, Y, chains=3, count=20)
    other = run(Kernel(model, by_mafla), X, Y, chains=3, count=20, method="vectorized")
    for name, draws in one.get_samples(group_by_chain=True).items():
        np.testing.assert_allclose(other.get_samples(group_by_chain=True)[name], draws, rtol=1e-6)


@pytest.mark.nightly
def test_chains_start_where_they_are_told_and_go_on():
    starts = {"slope": jnp.array([0.5, 0.6]), "scale": jnp.array([0.1, -0.1])}
    kernel = Kernel(model, lambda logdensity_fn: levymc.levy_walk(logdensity_fn, 1e-9))
    mcmc = run(kernel, X, Y, chains=2, count=5, method="vectorized", warmup=0, init_params=starts)
    np.testing.assert_allclose(mcmc.get_samples(True)["slope"][:, 0], starts["slope"], atol=1e-5)
    mcmc.post_warmup_state = mcmc.last_state
    mcmc.run(KEY, X, Y)
    assert mcmc.get_samples(True)["slope"].shape == (2, 5)


def test_blackjax_and_plates_that_subsample():
    blackjax = pytest.importorskip("blackjax")

    def batched(y):
        mu = numpyro.sample("mu", dist.Normal())
        with numpyro.plate("rows", 4, subsample_size=2) as rows:
            numpyro.sample("y", dist.Normal(mu, 1.0), obs=y[rows])

    kernel = Kernel(batched, lambda f: blackjax.nuts(f, 0.5, jnp.ones(1)))
    mcmc = run(kernel, Y, count=20, extra_fields=("step_size",))
    assert len(np.unique(mcmc.get_samples()["mu"])) > 10
    assert np.all(np.isnan(mcmc.get_extra_fields()["step_size"]))  # which it does not tell


def two_sites(y):
    """Exactly normal: E x = E z = y/3 with variance 2/3 and covariance -1/3."""
    x = numpyro.sample("x", dist.Normal(0.0, 1.0))
    z = numpyro.sample("z", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(x + z, 1.0), obs=y)


def draw_z(rng_key, gibbs_sites, hmc_sites):
    mean = (3.0 - hmc_sites["x"]) / 2
    return {"z": mean + jnp.sqrt(0.5) * jax.random.normal(rng_key)}


def last_of_many(kernel, *args, chains, steps):
    """The last states of many independent chains."""
    found = []

    def one(key):
        state = kernel.init(key, 0, None, args, {})
        state = jax.lax.fori_loop(0, steps, lambda _, s: kernel.sample(s, args, {}), state)
        return kernel.get_constrain_fn(args, {})(state.z)

    found = jax.jit(jax.vmap(one))(jax.random.split(KEY, chains))
    return {name: np.asarray(draws) for name, draws in found.items()}


@pytest.mark.nightly
def test_a_block_of_gibbs_follows_the_other():
    """Means, variances and covariance of the last states of 4000 chains, exactly normal.

    The bounds are six standard errors, for a false-alarm rate of 2e-9 each.  A block that knew the
    first value of its sibling alone would have a mean of 1.5.
    """
    walk = Kernel(two_sites, lambda f: levymc.mafla(f, 0.5))
    kernel = Gibbs([(CustomGibbs(draw_z), ["z"]), (walk, None)])
    draws = last_of_many(kernel, 3.0, chains=4000, steps=150)
    found = np.stack([draws["x"], draws["z"]])
    np.testing.assert_allclose(found.mean(axis=1), 1.0, atol=6 * np.sqrt(2 / 3 / 4000))
    covariance = np.array([[2.0, -1.0], [-1.0, 2.0]]) / 3
    np.testing.assert_allclose(np.cov(found), covariance, atol=6 * np.sqrt(8 / 9 / 4000))


def test_refreshing_renews_what_a_state_knows_of_the_density():
    """And nothing else: neither the position nor the count of steps, of one chain or of many."""
    kernel = Kernel(two_sites, by_mafla)
    step = jax.jit(lambda state: kernel.sample(state, (3.0,), {}))
    state = step(kernel.init(KEY, 0, None, (3.0,), {}))
    fresh = kernel.refresh(state, (-2.0,), {})
    known = by_mafla(levymc.interop.numpyro.from_numpyro(two_sites, -2.0).logdensity_fn)
    expected = known.init(state.z)
    np.testing.assert_allclose(fresh.inner.logdensity, expected.logdensity, rtol=1e-6)
    for renewed, leaf in zip(
        *map(jax.tree.leaves, (fresh.inner.drift, expected.drift)), strict=True
    ):
        np.testing.assert_allclose(renewed, leaf, rtol=1e-6)
    assert fresh.inner.step == state.inner.step == 1
    assert fresh.z == state.z
    many = kernel.init(jax.random.split(KEY, 3), 0, None, (3.0,), {})
    again = kernel.refresh(many, (3.0,), {})
    np.testing.assert_allclose(again.inner.logdensity, many.inner.logdensity, rtol=1e-6)


def labelled(locs):
    label = numpyro.sample("label", dist.Categorical(jnp.array([0.3, 0.7])))
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    numpyro.sample("y", dist.Normal(locs[label], scale), obs=0.5)


@pytest.mark.nightly
def test_discrete_sites_by_their_own_block():
    """And constrained values of ours, which Gibbs hands on, are constrained once."""
    kernel = Gibbs([(DiscreteGibbs(labelled), ["label"]), (Kernel(labelled, by_mafla), ["scale"])])
    mcmc = run(kernel, jnp.array([0.0, 1.0]), count=200)
    found = mcmc.get_samples()
    assert set(np.unique(found["label"])) == {0, 1}
    assert np.all(found["scale"] > 0)
    assert len(np.unique(found["scale"])) > 50


def test_supports_that_depend_on_sites_are_refused_in_gibbs():
    def dependent():
        top = numpyro.sample("top", dist.HalfNormal(1.0))
        numpyro.sample("x", dist.Uniform(0.0, top))

    blocks = [(Kernel(dependent, by_mafla), ["x"]), (Kernel(dependent, by_mafla), ["top"])]
    with pytest.raises(ValueError, match=r"those of 'x', which may depend on other sites"):
        run(Gibbs(blocks))


def test_what_is_no_kernel_is_refused():
    with pytest.raises(TypeError, match=r"`model` must be a function"):
        Kernel(None, by_mafla)
    with pytest.raises(TypeError, match=r"`algorithm` must be a function .*levymc.mafla"):
        Kernel(model, lambda: None)
    sgld = Kernel(model, lambda f: levymc.sgld(lambda x, batch: x, 0.1))
    with pytest.raises(TypeError, match=r"must need no minibatches, got sgld. Run it by"):
        run(sgld, X, Y)


def by_rows(y):
    with numpyro.plate("rows", 4):
        numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal()), 1.0), obs=y)


def test_arviz_reads_its_runs():
    arviz = pytest.importorskip("arviz")
    mcmc = run(Kernel(by_rows, by_mafla), Y, chains=2, count=20, method="vectorized")
    data = arviz.from_numpyro(mcmc)
    assert data.posterior["mu"].dims == ("chain", "draw", "rows")
    assert "diverging" in data.sample_stats
