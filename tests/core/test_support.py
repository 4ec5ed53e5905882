"""Chains and the support of their target: wrong steps, starts, step sizes and densities."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc


def gamma(x):
    """Γ(3, 1) on x > 0; for x < 0 the logarithm is NaN, and yet the gradient finite."""
    return 2 * jnp.log(x) - x


def half_normal(x):
    return jnp.where(x > 0, -x * x / 2, -jnp.inf)


UNADJUSTED = {
    "ula": lambda target: levymc.ula(target, 0.05),
    "fla": lambda target: levymc.fla(target, 0.05, 1.5),
    "flmc": lambda target: levymc.flmc(
        target, 0.05, 1.5, drift=levymc.drifts.leading_term(target, 1.5)
    ),
    "underdamped": lambda target: levymc.underdamped(target, 0.2, 1.5),
}


@pytest.mark.parametrize("target", [gamma, half_normal])
@pytest.mark.parametrize("name", UNADJUSTED)
@pytest.mark.often("ula-gamma", "fla-half_normal", "flmc-gamma", "underdamped-half_normal")
def test_unadjusted_steps_never_end_outside_the_support(name, target):
    """Before, two thirds of ULA's chains and all of FLA's ended where log φ is NaN, unflagged."""
    starts = jnp.full(64, 2.0)
    with pytest.warns(UserWarning, match="log φ is not finite.*exact sampler.*transform"):
        result = levymc.sample(
            UNADJUSTED[name](target), jax.random.key(0), starts, 200, thin=4, progress=False
        )
    assert np.all(result.positions > 0)
    assert result.num_outside == result.num_divergent > 0
    assert result.statistics["outside"].sum() == result.num_outside
    assert f"{result.num_divergent} divergent" in repr(result)
    assert result.algorithm == name
    assert result.is_exact is False


def test_a_run_that_is_told_not_to_look_does_not():
    """The density is then not computed: of a target that is finite everywhere, the same draws."""

    def run(target, **options):
        algorithm = levymc.ula(target, 0.05, **options)
        starts = jnp.full(64, 0.3)
        return levymc.sample(algorithm, jax.random.key(0), starts, 100, progress=False)

    def normal(x):
        return -x * x / 2

    unlooked = run(normal, checks_support=False)
    np.testing.assert_allclose(unlooked.positions, run(normal).positions, rtol=1e-12)
    assert unlooked.info.is_outside is None
    lost = run(gamma, checks_support=False)
    assert np.any(lost.positions < 0)


@pytest.mark.parametrize("build", [levymc.mafla, levymc.levy_walk])
@pytest.mark.often("mafla")
def test_an_exact_sampler_may_refuse_without_a_warning(build):
    """A proposal at which log φ is NaN cannot be judged; to refuse it keeps the target."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = levymc.sample(
            build(gamma, 0.5), jax.random.key(0), jnp.full(16, 2.0), 200, progress=False
        )
    assert np.all(result.positions > 0)
    assert result.is_exact
    assert result.num_divergent > 0
    assert "refused" in repr(result)


def support_gradient():
    return levymc.grad_estimator(
        lambda x: jnp.where(x > 0, -x, -jnp.inf), lambda x, y: jnp.log(x) - x * y, 20
    )


def test_stochastic_gradients_keep_to_the_support_of_the_prior():
    algorithm = levymc.sgfla(support_gradient(), 0.01, 1.5)
    data = levymc.batches(jnp.ones(20), 5)
    with pytest.warns(UserWarning, match="log φ is not finite"):
        result = levymc.sample(
            algorithm, jax.random.key(0), jnp.ones(32), 200, minibatches=data, progress=False
        )
    assert np.all(result.positions > 0)
    assert result.num_outside > 0


def test_a_minibatch_that_is_impossible_where_the_chain_is_is_counted():
    """The prior is whole, the likelihood is not: the step that led there was made, but counts."""
    gradient = levymc.grad_estimator(lambda x: -x * x / 2, lambda x, y: jnp.log(x) - x * y, 20)
    algorithm = levymc.sgld(gradient, 0.05)
    state, info = algorithm.step(jax.random.key(0), algorithm.init(-1.0), jnp.ones(5))
    assert float(state.position) == -1.0
    assert bool(info.is_divergent)
    assert bool(info.is_outside)


@pytest.mark.parametrize("name", [*UNADJUSTED, "mafla", "levy_walk", "sgfla"])
def test_starts_outside_the_support_are_refused_with_their_place(name):
    builders = UNADJUSTED | {
        "mafla": lambda target: levymc.mafla(target, 0.05),
        "levy_walk": lambda target: levymc.levy_walk(target, 0.05),
        "sgfla": lambda target: levymc.sgfla(support_gradient(), 0.01),
    }
    algorithm = builders[name](gamma)
    data = {"minibatches": levymc.batches(jnp.ones(20), 5)} if name == "sgfla" else {}
    starts = jnp.array([2.0, -3.5, 1.0])
    with pytest.raises(ValueError, match=r"-3\.5.*chains \[1\].*inside the support"):
        levymc.sample(algorithm, jax.random.key(0), starts, 10, progress=False, **data)
    with pytest.raises(ValueError, match="must be finite at the start"):
        algorithm.init(-3.5)


@pytest.mark.parametrize(
    ("schedule", "step"),
    [
        (lambda n: 0.1 - 0.002 * n, 50),
        (lambda n: jnp.where(n == 30, jnp.nan, 0.1), 30),
        (lambda n: jnp.where(n > 70, 0.0, 0.1), 71),
        (lambda n: jnp.where(n == 3, jnp.inf, 0.1), 3),
    ],
    ids=["negative", "nan", "zero", "infinite"],
)
@pytest.mark.parametrize("burn_in", [0, 60])
@pytest.mark.often("0-negative", "60-nan", "60-zero", "60-infinite")
def test_a_schedule_that_turns_wrong_is_refused_at_its_step(schedule, step, burn_in):
    def normal(x):
        return -x * x / 2

    for algorithm in (levymc.fla(normal, schedule, 1.5), levymc.mafla(normal, schedule)):
        with pytest.raises(ValueError, match=f"positive and finite.*at step {step}"):
            levymc.sample(
                algorithm,
                jax.random.key(0),
                jnp.zeros(2),
                100 - burn_in,
                burn_in=burn_in,
                thin=10,
                progress=False,
            )


def test_a_stored_run_looks_at_its_whole_schedule_before_it_begins(tmp_path):
    """The function is not stored with it."""
    algorithm = levymc.ula(lambda x: -x * x / 2, lambda n: 0.1 - 0.002 * n)
    with pytest.raises(ValueError, match="at step 50"):
        levymc.sample(
            algorithm, jax.random.key(0), jnp.zeros(2), 100, store=tmp_path / "run", progress=False
        )
    assert not (tmp_path / "run").exists()


def test_a_store_knows_what_made_it(tmp_path):
    algorithm = levymc.mafla(gamma, 0.5)
    levymc.sample(
        algorithm, jax.random.key(0), jnp.ones(2), 20, store=tmp_path / "run", progress=False
    )
    found = levymc.load(tmp_path / "run")
    assert (found.algorithm, found.is_exact) == ("mafla", True)


def test_a_step_of_a_wrong_size_is_not_made():
    """By itself, outside of a run: no position is NaN, and the step is flagged."""
    algorithm = levymc.ula(lambda x: -x * x / 2, lambda n: 3.0 - 2.0 * n)
    state = algorithm.init(0.5)
    state, info = algorithm.step(jax.random.key(0), state)
    assert not bool(info.is_divergent)
    moved, info = algorithm.step(jax.random.key(1), state)
    assert bool(info.is_divergent)
    assert float(moved.position) == float(state.position)
    assert int(moved.step) == 2


def vector(x):
    return -x * x / 2


@pytest.mark.parametrize("name", [*UNADJUSTED, "flmc, exact", "mafla", "levy_walk"])
def test_a_vector_valued_log_density_is_refused(name):
    builders = UNADJUSTED | {
        "flmc, exact": lambda target: levymc.flmc(target, 0.05, 1.5),
        "mafla": lambda target: levymc.mafla(target, 0.05),
        "levy_walk": lambda target: levymc.levy_walk(target, 0.05),
    }
    with pytest.raises(TypeError, match="must return a scalar, got shape"):
        levymc.sample(
            builders[name](vector), jax.random.key(0), jnp.zeros((4, 2)), 10, progress=False
        )
