"""Diagnostics: against closed forms, independent code, and runs that are sick on purpose."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats
from tests.bounds import dkw_bound

import levymc
from levymc import diagnostics, integrators
from levymc.algorithms import Info
from levymc.diagnostics import _stein, check

EDGES = np.linspace(-6, 6, 61)
KEY = jax.random.key(5)
SPREAD = jnp.linspace(-4, 4, 4)


# Compiled as a whole: one program for each number of points, not one for each operation.
@jax.jit
def normal(x):
    return -jnp.sum(x**2) / 2


@jax.jit
def double_well(x):
    return -((x + 5) * (x + 1) * (x - 1.02) * (x - 5) / 10 + 0.5)


@jax.jit
def cauchy(x):
    return -jnp.sum(jnp.log1p(x**2))


@jax.jit
def student_four(x):
    return -2.5 * jnp.log1p(x**2 / 4)


TIMID = levymc.ula(double_well, 0.01)  # never crosses the barrier


def run(algorithm, starts=SPREAD, num_steps=5000):
    return levymc.sample(algorithm, KEY, starts, num_steps, progress=False)


def made(positions, *, acceptance=None, weights=None, **info):
    """A result made by hand; read-only, as a run's may be."""
    shape = np.shape(jax.tree.leaves(positions)[0])[:2]
    values = {"step_size": 0.1, "is_divergent": False, "largest_jump": 0.1, "taming": 0.0} | info
    values["acceptance_rate"] = 0.4 if acceptance is None else acceptance
    leaves = {name: np.broadcast_to(value, shape) for name, value in values.items()}
    return levymc.Result(
        positions, np.ones(shape) if weights is None else weights, Info(**leaves)
    )  # fmt: skip


def noise(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


# R-hat and effective sample size


def test_rhat_and_ess_are_arviz_s():
    import arviz

    draws = {"a": noise(4, 200), "b": np.cumsum(noise(4, 200, 2, 3), axis=1)}
    data = arviz.convert_to_dataset(draws)
    for name in draws:
        assert diagnostics.rhat(draws)[name].shape == draws[name].shape[2:]
        np.testing.assert_allclose(diagnostics.rhat(draws)[name], arviz.rhat(data)[name])
        for kind in ("bulk", "tail"):
            ours = diagnostics.ess(draws, kind=kind)[name]
            prob = (0.05, 0.95) if kind == "tail" else None
            np.testing.assert_allclose(ours, arviz.ess(data, method=kind, prob=prob)[name])


def test_the_tail_is_the_same_to_every_version_of_arviz(monkeypatch):
    """From version 1 on, ArviZ takes other quantiles if none are given."""
    asked = []
    monkeypatch.setattr("arviz.ess", lambda values, **options: asked.append(options) or 1.0)
    diagnostics.ess(noise(4, 9), kind="tail")
    assert asked == [{"method": "tail", "prob": (0.05, 0.95)}]


def test_a_result_is_taken_as_it_is():
    result = made(noise(4, 50))
    np.testing.assert_array_equal(
        diagnostics.rhat(result)["x"], diagnostics.rhat(result.positions)["x"]
    )


def test_one_chain_is_cut_in_two():
    still = noise(1, 1000)
    assert diagnostics.rhat(still) == diagnostics.rhat(still.reshape(2, 500))
    assert diagnostics.rhat(still)["x"] < 1.05
    assert diagnostics.rhat(still + np.linspace(0, 5, 1000))["x"] > 1.5


def test_chains_that_do_not_move():
    apart = np.broadcast_to(np.arange(4.0)[:, None], (4, 100))
    assert diagnostics.rhat(apart)["x"] == np.inf
    for statistic in (diagnostics.rhat, diagnostics.ess):
        with pytest.warns(UserWarning, match="All draws of x are equal"):
            assert np.isnan(statistic(np.ones((4, 100)))["x"])
        one = noise(4, 100, 2, 3)
        one[..., 1, 2] = 3.0
        with pytest.warns(UserWarning, match=r"All draws of x\[1, 2\] are equal"):
            assert np.sum(np.isnan(statistic(one)["x"])) == 1


# Tail index


def symmetric_pareto(index, count, seed=0):
    """Pareto sizes with balanced signs about an exact median of 0."""
    sizes = np.random.default_rng(seed).uniform(size=2 * count) ** (-1 / index)
    return np.concatenate([sizes[:count], -sizes[count:], [0.0]])


@pytest.mark.parametrize("index", [0.8, 1.5, 3.0])
def test_tail_index_of_a_pareto_law(index):
    """k·a/â is Gamma(k) exactly; false alarms 1e-6; detects an index off by a quarter."""
    found = diagnostics.tail_index(symmetric_pareto(index, 50_000), num_largest=2000)
    low, high = stats.gamma(2000).ppf([5e-7, 1 - 5e-7]) / 2000
    assert low < index / found.index < high
    assert 0.9 < found.standard_error / (found.index / np.sqrt(2000)) < 1.6


def test_tail_index_of_stable_increments():
    """The Gamma law and 5 % of bias at k = √N; false alarms 1e-6; detects α off by 0.5."""
    motion = levymc.stable.levy_motion(jax.random.key(1), 1.5, 0.1 * jnp.arange(100_001))
    found = diagnostics.increment_tail_index({"a": motion[None]})["a"]
    k = found.num_largest
    assert k == 317
    low, high = stats.gamma(k).ppf([5e-7, 1 - 5e-7]) / k
    assert 0.95 * low < 1.5 / found.index < 1.05 * high
    assert found.index.shape == ()


def test_light_tails_have_a_large_index():
    found = diagnostics.draw_tail_index(noise(4, 5000, 2))["x"]
    assert found.index.shape == (2,)
    assert np.all(found.index > 5)


def test_correlation_widens_the_error_of_the_tail_index():
    values = symmetric_pareto(1.5, 5000)
    np.random.default_rng(1).shuffle(values)
    alone = diagnostics.tail_index(values, num_largest=200)
    held = diagnostics.tail_index(np.repeat(values, 20), num_largest=4000)
    assert held.index == pytest.approx(alone.index, rel=0.05)
    assert 0.8 < held.standard_error / alone.standard_error < 1.6


def test_one_long_stay_far_out_is_one_value_to_the_tail_index():
    """All of the largest are of one cluster: the error is as large as the estimate."""
    values = noise(10_000)
    values[2000:2200] += 100
    found = diagnostics.tail_index(values)
    assert found.standard_error > 0.3 * found.index


def test_a_tail_that_changes_along_the_chain_widens_the_error():
    """Independent values, so that there are no clusters, of index 0.5 and then 4."""
    light, heavy = symmetric_pareto(4.0, 5000), symmetric_pareto(0.5, 5000)
    for half in (light, heavy):
        np.random.default_rng(1).shuffle(half)
    found = diagnostics.tail_index(np.concatenate([heavy, light]), num_largest=8000)
    assert found.standard_error > 2 * found.index / np.sqrt(8000)


# Hops and jumps


def test_hops_are_counted_from_core_to_core():
    at_the_top = [-4.0, 0.1, -0.1, 3.5, -3.5, 0.2, -3.7]
    assert diagnostics.hops(at_the_top, (-3.6, 3.6)) == 0
    assert diagnostics.hops([0.0, -3.6, 3.6, 0.0, -3.6], (-3.6, 3.6)) == 2
    assert diagnostics.hops([0.0, 0.0], (-3.6, 3.6)) == 0
    three = diagnostics.hops([[-9.0, 0, 9, 0], [-9, -2, 2, 9]], (-5, -1, 1, 5))
    np.testing.assert_array_equal(three, [3, 1])


def test_hops_agree_with_a_plain_loop():
    walks = np.cumsum(noise(20, 500), axis=1) / 3
    for walk, found in zip(walks, diagnostics.hops(walks, (-1.0, 1.0)), strict=True):
        last, count = None, 0
        for x in walk:
            here = "left" if x <= -1 else "right" if x >= 1 else last
            count += last is not None and here != last
            last = here
        assert found == count


def test_jumps_are_counted_by_chain():
    sizes = np.array([[0.1, 2.0, 3.0], [0.1, 0.2, 2.0]])
    np.testing.assert_array_equal(
        diagnostics.jumps(made(np.zeros((2, 3)), largest_jump=sizes), 1.0), [2, 1]
    )
    with pytest.raises(TypeError, match="levymc's algorithms, got info of type NoneType"):
        diagnostics.jumps(levymc.Result(sizes, sizes, None), 1.0)


# Distances


def quantiles(law, count=20_000):
    return law.ppf((np.arange(count) + 0.5) / count)


def test_reference_numbers_of_the_double_well():
    assert diagnostics.mass_left_of(0.0, double_well, EDGES) == pytest.approx(0.54263, abs=5e-6)
    # W1 from a point mass left of everything is the distance of the means.
    distance = diagnostics.wasserstein([-50.0], double_well, EDGES)
    assert distance - 50 == pytest.approx(-0.30140, abs=5e-6)
    assert diagnostics.total_variation([-50.0], double_well, EDGES) == pytest.approx(1.0)
    # A draw on an edge belongs to the bin on its right.
    assert diagnostics.total_variation([0.0], lambda x: -12.5 * (x - 1) ** 2, [0, 2]) < 1e-5


@pytest.mark.parametrize("shift", [0.0, 0.3, 2.0])
def test_distances_of_two_normal_laws(shift):
    """TV = 2Φ(μ/2) − 1 where an edge is at μ/2, to the draws a bin; W1 = μ."""
    draws = quantiles(stats.norm(shift, 1))
    edges = np.append(np.linspace(-5, shift / 2, 30), np.linspace(shift / 2, 7, 30)[1:])
    exact = 2 * stats.norm.cdf(shift / 2) - 1
    assert diagnostics.total_variation(draws, normal, edges) == pytest.approx(exact, abs=2e-3)
    assert diagnostics.wasserstein(draws, normal, edges) == pytest.approx(shift, abs=2e-4)


@pytest.mark.parametrize("edges", [EDGES, [-1.0, 0.0, 3.0], np.linspace(-300, 300, 200)])
def test_wasserstein_agrees_with_scipy_s(edges):
    """Student's t(4), against scipy on a grid of quantiles; for any edges."""
    law = stats.t(4)
    draws, weights = 2 * noise(3, 40) + 1, np.linspace(0.1, 2, 120).reshape(3, 40)
    expected = stats.wasserstein_distance(
        draws.ravel(), quantiles(law, 400_000), weights.ravel(), None
    )
    found = diagnostics.wasserstein(draws, student_four, edges, weights=weights)
    assert found == pytest.approx(expected, abs=1e-4)


def test_heavy_tails_beyond_the_edges_are_integrated():
    for point in (-40.0, -3.0, 0.5, 1e4):
        mass = diagnostics.mass_left_of(point, cauchy, EDGES)
        assert mass == pytest.approx(stats.cauchy.cdf(point), abs=1e-8)
    with pytest.raises(ValueError, match="W1 is infinite"):
        diagnostics.wasserstein([0.0], cauchy, EDGES)


def test_total_variation_of_true_draws_is_small():
    """Twice the DKW bound a bin edge; false alarms 1e-6; detects 4 % of the mass moved."""
    draws = np.random.default_rng(3).standard_cauchy((4, 25_000))
    edges = [-1.0, 1.0]
    assert diagnostics.total_variation(draws, cauchy, edges) < 2 * dkw_bound(100_000, 1e-6)


def test_weights_count():
    draws, weights = [-3.0, 3.0, 3.0], [2.0, 1.0, 1.0]
    doubled = [-3.0, -3.0, 3.0, 3.0]
    for distance in (diagnostics.total_variation, diagnostics.wasserstein):
        assert distance(draws, normal, EDGES, weights=weights) == pytest.approx(
            distance(doubled, normal, EDGES)
        )


def test_density_whose_polynomial_overflows_far_out():
    overflowing = jax.jit(lambda x: x**2 - x**4 + 0 * x**9 * x**300)
    quartic = diagnostics.mass_left_of(0.0, overflowing, EDGES)
    assert quartic == pytest.approx(0.5)


def test_in_single_precision():
    # The precision of JAX's default dtype decides what is asked of the quadrature.
    with jax.enable_x64(False):
        mass = diagnostics.mass_left_of(0.0, double_well, EDGES)
    assert mass == pytest.approx(0.54263, abs=1e-4)


# Kernel Stein discrepancy


def grid(shift):
    """The law N(μ, 1) as weighted points; the trapezoidal rule is exact to rounding."""
    points = np.arange(-10, 10.01, 0.1)
    return points + shift, np.exp(-(points**2) / 2)


@pytest.mark.parametrize("shift", [0.0, 0.5, 2.0])
def test_stein_discrepancy_of_normal_laws(shift):
    """KSD² = μ² E(1 + 2Z²)^{-1/2} = μ² e^{1/8} K₀(1/8) / (2√π) from N(μ, 1) to N(0, 1)."""
    points, weights = grid(shift)
    found = diagnostics.kernel_stein_discrepancy(jnp.asarray(points), normal, weights=weights)
    exact = shift * np.sqrt(special.k0e(1 / 8) / (2 * np.sqrt(np.pi)))
    assert found == pytest.approx(exact, abs=1e-5)


def test_stein_discrepancy_agrees_with_derivatives_by_jax(monkeypatch):
    draws = {"a": jnp.asarray(noise(30, 2)), "b": jnp.asarray(noise(30, seed=1))}

    def target(position):
        return -jnp.sum(position["a"] ** 4) - (position["b"] - position["a"][0]) ** 2

    def kernel(x, y):
        return (0.7**2 + jnp.sum((x - y) ** 2)) ** -0.5

    flat = jnp.column_stack([draws["a"], draws["b"]])
    score = jax.grad(lambda x: target({"a": x[:2], "b": x[2]}))

    def stein(x, y):
        trace = jnp.trace(jax.jacfwd(jax.grad(kernel), argnums=1)(x, y))
        sides = score(x) @ jax.grad(kernel, 1)(x, y) + score(y) @ jax.grad(kernel)(x, y)
        return score(x) @ score(y) * kernel(x, y) + sides + trace

    pairs = jax.jit(jax.vmap(jax.vmap(stein, (None, 0)), (0, None)))
    expected = jnp.sqrt(jnp.mean(pairs(flat, flat)))
    discrepancy = diagnostics.kernel_stein_discrepancy
    assert discrepancy(draws, target, length_scale=0.7) == pytest.approx(float(expected))
    monkeypatch.setattr(_stein, "BLOCK_ENTRIES", 7 * 90)  # blocks that do not divide the rows
    by_score = discrepancy(draws, score=jax.grad(target), length_scale=0.7)
    assert by_score == pytest.approx(float(expected))


# Check


def test_a_healthy_run_has_no_finding():
    report = check(run(levymc.levy_walk(double_well, 4.0), num_steps=20_000), double_well)
    assert report, str(report)
    assert str(report) == "levy_walk, exact: nothing looks wrong."


def test_independent_draws_have_no_finding():
    """Rank R-hat of 4 × 2000 independent draws passes 1.01 once in more than 1e6."""
    positions = {"a": noise(4, 2000, 2), "b": np.random.default_rng(1).standard_cauchy((4, 2000))}
    report = check(made(positions))
    assert report, str(report)
    assert "no chain has visited" in str(report)


def test_stuck_chains():
    positions = noise(4, 500)
    positions[2] = 1.0
    report = check(made(positions))
    assert report.kinds == ("stuck",)
    assert "1 of 4 chains (number 2) stayed at one place for up to 500 of 500" in str(report)
    positions = noise(4, 2000)
    positions[1, 300:800] = 0.5
    assert "up to 500 of 2000" in check(made(positions)).findings[0].message
    assert check(made(noise(4, 500), acceptance=0.001)).kinds == ("stuck",)


def test_a_run_that_explodes():
    explosive = levymc.fla(double_well, 0.1, 1.5, integrator=integrators.euler())
    with pytest.warns(UserWarning, match="so far out that it overflows"):
        result = run(explosive)
    report = check(result, double_well)
    assert "divergences" in report.kinds
    assert "tamed() or split()" in str(report)


def test_chains_in_separate_wells():
    report = check(run(TIMID))
    assert report.kinds[0] == "modes"
    assert "each in one mode only" in str(report)
    assert "levy_walk" in report.findings[0].remedy


def test_one_mode_only_is_seen_with_the_density():
    result = run(TIMID, jnp.full(4, -3.6))
    assert "cannot be seen" in str(check(result))
    report = check(result, double_well)
    assert "one mode only" in report.kinds
    assert "the chains have missed a mode" in str(report)


def test_one_mode_only_of_many_coordinates():
    """Along the second of 20 coordinates; and no alarm without another mode."""

    def target(x):
        return jnp.logaddexp(-((x[1] - 8) ** 2) / 2, -(x[1] ** 2) / 2) + x[1] ** 2 / 2 + normal(x)

    result = made(noise(4, 2000, 20))
    assert check(result, target).kinds == ("one mode only",)
    assert "coordinate 1 of" in str(check(result, target))
    assert check(result, normal)


def test_fla_on_a_heavy_tailed_target():
    result = run(levymc.fla(cauchy, 0.1, 1.5), num_steps=10_000)
    for report in (check(result), check(result, cauchy)):
        assert not report
        assert "heavy-tailed target fla and sgfla are not valid" in str(report)
        assert "levymc.mafla or levymc.levy_walk" in str(report)
    assert "heavy tails" in check(result, cauchy).kinds


def test_fla_leaves_heavy_tails_on_a_light_target():
    result = run(levymc.fla(normal, 0.1, 1.5), num_steps=10_000)
    assert "heavy tails" in check(result, normal).kinds
    assert "whatever the target" in str(check(result))
    # Gaussian noise, or a Metropolis test, and all is well.
    assert "heavy tails" not in check(made(result.positions)).kinds
    assert check(made(noise(4, 2000), acceptance=1.0), normal)


def test_steps_too_large_and_too_small():
    assert check(made(noise(4, 500), acceptance=0.03)).kinds == ("step too large",)
    assert check(made(noise(4, 500), acceptance=0.99)).kinds == ("step too small",)
    tamed = check(made(noise(4, 500), acceptance=1.0, taming=0.9))
    assert tamed.kinds == ("step too large",)
    assert check(made(noise(4, 500), taming=0.9))  # behind a Metropolis test


def test_chains_that_have_not_converged():
    report = check(made(np.cumsum(noise(4, 1000), axis=1)))
    assert "few effective draws" in report.kinds
    assert {"modes", "not converged"} & set(report.kinds)
    report = check(made(noise(4, 1000) + 0.4 * np.arange(4)[:, None]))
    assert report.kinds[0] == "not converged"


def test_the_remedy_names_proposals_only_where_there_are_some():
    wandering = np.cumsum(noise(4, 1000), axis=1)
    assert "proposals are accepted" in str(check(made(wandering, acceptance=0.5)))
    unadjusted = str(check(made(wandering, acceptance=1.0)))
    assert "proposals" not in unadjusted
    assert "a larger step size or scale moves faster, but is more biased" in unadjusted


def test_weights_of_decreasing_steps():
    weights = np.broadcast_to(1.0 / np.arange(1, 2001) ** 0.9, (4, 2000))
    report = check(made(noise(4, 2000), weights=weights))
    assert report.kinds[0] == "weights"
    assert "result.expectation" in str(report)
    slowly = check(made(noise(4, 2000), weights=weights**0.1))
    assert slowly
    assert "The draws have weights" in str(slowly)


@pytest.mark.parametrize("num_draws", [1, 2, 3, 7, 19])
def test_few_draws(num_draws):
    report = check(made({"a": noise(1, num_draws), "b": noise(1, num_draws, 2)}))
    assert report.kinds == ("too few draws",)
    assert "too few to tell" in str(report)


def test_one_chain_and_many_coordinates():
    report = check(made(noise(1, 1000, 300)), max_coordinates=20)
    assert "20 of 300 coordinates" in str(report)
    assert "nothing to agree with" in str(report)


class ForeignInfo(NamedTuple):
    """As BlackJAX's: of many shapes."""

    acceptance_rate: Any
    is_divergent: Any
    momentum: Any


def test_other_algorithms():
    import blackjax

    walk = blackjax.rmh(normal, blackjax.mcmc.random_walk.normal(jnp.asarray(2.0)))
    report = check(run(walk), normal)
    assert report, str(report)
    shape = (4, 500)
    info = ForeignInfo(np.full(shape, 0.99), np.arange(2000).reshape(shape) < 3, np.ones((4, 5)))
    report = check(levymc.Result(noise(*shape), np.ones(shape), info))
    assert report.kinds == ("divergences",)
    assert "3 of 2000 draws diverged" in str(report)


def test_draws_that_are_not_finite():
    positions = noise(4, 100)
    positions[0, 5] = np.nan
    assert "not finite" in check(made(positions)).kinds


def test_constant_draws_and_a_constant_coordinate():
    assert check(made(np.ones((4, 100)))).kinds == ("stuck",)
    positions = noise(4, 2000, 2)
    positions[..., 1] = 3.0
    assert check(made(positions), normal)


def test_without_arviz(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "arviz", None)
    assert "ArviZ is not installed" in str(check(made(noise(4, 500))))
    for statistic in (diagnostics.rhat, diagnostics.ess):
        with pytest.raises(ImportError, match=r"^[^.]* pip install 'levymc\[arviz\]'\.$"):
            statistic(noise(4, 500))


def test_report_in_html_is_escaped():
    finding = diagnostics.Finding("a<b", "x & y", "z")
    text = diagnostics.Report((finding,), ("1 < 2",))._repr_html_()
    assert "a&lt;b" in text
    assert "x &amp; y" in text
    assert "1 &lt; 2" in text


# Errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: diagnostics.rhat(noise(10)), r"must have chains and draws, got x of \(10,\)"),
        (lambda: diagnostics.rhat(noise(4, 3)), "at least 4 draws a chain, got 3 of x"),
        (lambda: diagnostics.rhat(np.full((4, 9), np.nan)), r"`draws\[x\]` must be finite"),
        (lambda: diagnostics.ess(noise(4, 9), kind="mean"), "`kind` must be"),
        (lambda: diagnostics.tail_index(noise(50)), "at least 100 values"),
        (lambda: diagnostics.tail_index(noise(200), num_largest=150), "at most 100, got 150"),
        (lambda: diagnostics.tail_index(np.zeros(200)), "The chain hardly moved"),
        (lambda: diagnostics.tail_index(np.repeat([0.0, 1, 1e9], 100)), "must not all be equal"),
        (lambda: diagnostics.hops(noise(9), (1.0,)), "an even number of values"),
        (lambda: diagnostics.hops(noise(9), (1.0, -1.0)), "`boundaries` must increase"),
        (lambda: diagnostics.hops(1.0, (-1.0, 1.0)), "an axis of draws"),
        (lambda: diagnostics.jumps(made(noise(2, 9)), 0), "`threshold` must be positive"),
        (lambda: diagnostics.total_variation([], normal, EDGES), "must not be empty"),
        (lambda: diagnostics.total_variation([0.0], normal, [1.0, 0.0]), "increasing points"),
        (
            lambda: diagnostics.total_variation([0.0], normal, EDGES, weights=[1.0, 2.0]),
            r"`weights` must have the shape \(1,\)",
        ),
        (
            lambda: diagnostics.wasserstein([0.0, 1.0], normal, EDGES, weights=[-1.0, 2.0]),
            "must not be negative",
        ),
        (lambda: diagnostics.mass_left_of(0.0, lambda x: 0 * x, EDGES), "a finite integral"),
        (lambda: diagnostics.mass_left_of(0.0, lambda x: jnp.log(x), EDGES), "got nan at"),
        (
            lambda: diagnostics.mass_left_of(0.0, lambda x: jnp.where(x > 0.03, -x, -9), EDGES),
            "a finite integral",
        ),
        (
            lambda: diagnostics.mass_left_of(
                0.0, lambda x: jnp.where(x > 0.03, -x, -jnp.inf), EDGES
            ),
            "Put an edge at every jump",
        ),
        (lambda: diagnostics.kernel_stein_discrepancy(jnp.zeros(3)), "either `logdensity_fn`"),
        (
            lambda: diagnostics.kernel_stein_discrepancy(jnp.zeros(3), jnp.log),
            "`score` must be finite, got inf",
        ),
        (
            lambda: diagnostics.kernel_stein_discrepancy(
                {"a": jnp.zeros(3), "b": jnp.zeros(2)}, normal
            ),
            "along the first axis of every leaf",
        ),
        (lambda: check(noise(4, 100)), "must be a levymc Result, got ndarray"),
        (lambda: check(made(noise(4, 100)), max_coordinates=0), "must be at least 1, got 0"),
    ],
)
def test_errors_teach(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
