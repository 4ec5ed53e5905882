"""Lévy motion as a path of diffrax: its increments, the law of a solution, and what is refused.

Statistical bounds: false-alarm rate at most 1e-8 each, eight of them in the file.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bounds import distance_to, dkw_bound

import levymc

diffrax = pytest.importorskip("diffrax")
lineax = pytest.importorskip("lineax")

FALSE_ALARM = 1e-8
KEY = jax.random.key(8)


def motion(alpha=1.5, shape=(3,), num_steps=16, t0=1.0, t1=3.0, key=KEY, **options):
    return levymc.interop.diffrax.LevyMotion(
        t0, t1, alpha, key, shape, num_steps=num_steps, **options
    )


def solve(path, solver=None, dt0=None, drift=lambda x: -x, **options):
    """dX = drift(X) dt + dL from zero."""
    start = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), path.shape)

    def unit(t, x, args):
        return lineax.DiagonalLinearOperator(jnp.ones_like(x))

    terms = diffrax.MultiTerm(
        diffrax.ODETerm(lambda t, x, args: drift(x)), diffrax.ControlTerm(unit, path)
    )
    solver = diffrax.Euler() if solver is None else solver
    return diffrax.diffeqsolve(
        terms, solver, path.t0, path.t1, dt0=dt0, y0=start, max_steps=10_000, **options
    ).ys[-1]


def test_increments_add_up_however_the_time_is_divided():
    path = motion()
    whole = path.evaluate(1.0, 3.0)
    for division in ([1.0, 2.0, 3.0], [1.0, 1.125, 1.5, 2.875, 3.0], path.times):
        parts = [path.evaluate(s, t) for s, t in itertools.pairwise(division)]
        np.testing.assert_allclose(sum(parts), whole, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(path.evaluate(3.0, 1.0), -whole)
    np.testing.assert_array_equal(path.evaluate(3.0), whole)
    np.testing.assert_array_equal(path.evaluate(1.5, 1.5), 0.0)
    assert len(np.unique([path.evaluate(s, s + 0.125) for s in path.times[:-1]])) == 16 * 3


def test_a_long_jump_leaves_later_increments_their_digits():
    """Jumps of α = 0.1 differ by more than float64 has digits: each cell is drawn by itself."""
    path = motion(0.1, shape=(), num_steps=1000)
    cells = np.abs(jax.vmap(path.evaluate)(path.times[:-1], path.times[1:]))
    assert np.max(cells) > 1e17 * np.min(cells) > 0


@pytest.mark.parametrize("alpha", [0.8, 1.5, 2.0])
@pytest.mark.often("0.8", "2.0")
def test_law_of_an_increment(alpha):
    """SαS of scale (t - s)^{1/α}, over one cell and over seven.

    DKW, false-alarm rate 1e-8; detects an error of 13 % in the scale.
    """
    count = 100_000
    path = motion(alpha, shape=(count,))
    for begin, end in [(1.25, 1.375), (1.0, 1.875)]:
        draws = np.asarray(path.evaluate(begin, end)) / (end - begin) ** (1 / alpha)
        off = distance_to(draws, lambda x: np.asarray(levymc.stable.cdf(x, alpha)))
        assert off < dkw_bound(count, FALSE_ALARM)


def ornstein_uhlenbeck_scale(alpha, rate, time):
    return ((1 - np.exp(-alpha * rate * time)) / (alpha * rate)) ** (1 / alpha)


def euler_scale(alpha, rate, step, num_steps):
    power = abs(1 - step * rate) ** alpha
    return (step * (1 - power**num_steps) / (1 - power)) ** (1 / alpha)


@pytest.mark.parametrize("solver", ["Euler", "Heun"])
@pytest.mark.often("Euler")
def test_law_of_the_stable_ornstein_uhlenbeck_process(solver):
    """SαS of scale ((1 - e^{-αλt})/(αλ))^{1/α}.

    DKW, false-alarm rate 1e-8, beside what Euler's steps of λη = 0.02 are off, which is known:
    0.2 % of the scale.  Detects an error of 8 % in the scale.
    """
    alpha, rate, count, num_steps = 1.7, 0.5, 200_000, 50
    shape = jax.ShapeDtypeStruct((count,), jnp.float32)
    path = motion(alpha, shape=shape, num_steps=num_steps)
    draws = np.asarray(
        solve(path, getattr(diffrax, solver)(), 2 / num_steps, drift=lambda x: -rate * x)
    )
    scale = ornstein_uhlenbeck_scale(alpha, rate, 2.0)
    grid = np.linspace(-8, 8, 400)
    laws = [
        levymc.stable.cdf(grid / s, alpha)
        for s in (scale, euler_scale(alpha, rate, 2 / num_steps, num_steps))
    ]
    discretisation = float(np.max(np.abs(laws[0] - laws[1])))
    assert discretisation < 2e-3
    off = distance_to(draws, lambda x: np.asarray(levymc.stable.cdf(x / scale, alpha)))
    assert off < dkw_bound(count, FALSE_ALARM) + discretisation


@pytest.mark.nightly
def test_coarser_steps_see_the_same_motion():
    """The error falls with the steps path by path, though the drift is not linear."""
    path = motion(1.7, shape=(50,), num_steps=1024, t0=0.0, t1=1.0)
    ends = {cells: np.asarray(solve(path, dt0=cells / 1024, drift=jnp.sin)) for cells in (1, 4, 16)}
    errors = [np.median(np.abs(ends[cells] - ends[1])) for cells in (4, 16)]
    assert 3 * errors[0] < errors[1] < 0.1


def test_steps_to_the_times_of_the_grid():
    path = motion()
    by_times = solve(path, stepsize_controller=diffrax.StepTo(path.times))
    np.testing.assert_allclose(by_times, solve(path, dt0=0.125), rtol=1e-5)


def test_many_cells_in_single_precision():
    """Rounding of times is not taken for steps off the grid."""
    shape = jax.ShapeDtypeStruct((), jnp.float32)
    path = motion(shape=shape, num_steps=5000, t0=np.float32(0), t1=np.float32(7))
    assert path.t0.dtype == jnp.float32
    assert np.isfinite(solve(path, dt0=np.float32(7 / 5000)))


def test_positions_may_be_pytrees_and_alpha_too():
    shapes = {
        "x": jax.ShapeDtypeStruct((2,), jnp.float32),
        "y": jax.ShapeDtypeStruct((), jnp.float64),
    }
    increment = motion({"x": 1.2, "y": 2.0}, shapes).evaluate(1.0, 2.0)
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), increment) == {
        "x": ((2,), jnp.float32),
        "y": ((), jnp.float64),
    }


def test_isotropic_motion():
    """One jump for all coordinates: their sizes go together."""
    jump = motion(0.5, (200,), noise=levymc.noises.isotropic()).evaluate(1.0, 1.125)
    assert np.max(np.abs(jump)) < 10 * np.median(np.abs(jump))


@pytest.mark.nightly
def test_a_solution_is_mapped_over_keys_and_differentiated():
    keys = jax.random.split(KEY, 4)

    def end(key, rate):
        return solve(motion(key=key), dt0=0.125, drift=lambda x: -rate * x)

    ends = jax.jit(jax.vmap(end, in_axes=(0, None)))(keys, 1.0)
    assert len(np.unique(ends)) == 12
    value_and_slope = jax.jit(jax.value_and_grad(lambda rate: jnp.sum(end(KEY, rate))))
    difference = (value_and_slope(1.001)[0] - value_and_slope(0.999)[0]) / 0.002
    np.testing.assert_allclose(value_and_slope(1.0)[1], difference, rtol=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"dt0": 0.1},
        {"dt0": 0.125, "solver": diffrax.HalfSolver(diffrax.Euler())},
        {
            "dt0": 0.125,
            "solver": diffrax.Heun(),
            "stepsize_controller": diffrax.PIDController(rtol=1e-3, atol=1e-3),
        },
        {"stepsize_controller": diffrax.StepTo(jnp.array([1.0, 1.3, 3.0]))},
    ],
    ids=["steps between", "half a cell", "adaptive", "other times"],
)
@pytest.mark.often("half a cell", "other times")
def test_steps_off_the_grid_are_refused(options):
    with pytest.raises(Exception, match="must be asked at the times of its grid"):
        solve(motion(), **options)


def test_times_outside_are_refused():
    with pytest.raises(Exception, match="must be asked at the times of its grid"):
        motion().evaluate(1.0, 3.125)


def test_solvers_that_need_more_than_increments_are_refused():
    with pytest.raises(TypeError, match="do without a Lévy area"):
        solve(motion(), dt0=0.125, solver=diffrax.ShARK())
    with pytest.raises(TypeError, match="has no derivative"):
        motion().derivative(1.5)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"alpha": 0.0}, ValueError, r"`alpha` must lie in \(0, 2\], got 0.0"),
        ({"t1": 1.0}, ValueError, "`t1` must be later than `t0`, got 1.0 and 1.0"),
        ({"t0": [0.0, 1.0]}, TypeError, "`t0` must be one number"),
        ({"t1": jnp.inf}, ValueError, "`t1` must be finite"),
        ({"num_steps": 0}, ValueError, "`num_steps` must be at least 1, got 0"),
        ({"key": 0}, TypeError, "`key` must be a JAX random key"),
        ({"shape": (-1,)}, ValueError, "`shape` must have no negative size"),
        (
            {"shape": jax.ShapeDtypeStruct((2,), jnp.int32)},
            TypeError,
            "`shape` must be of floating type, got int32",
        ),
        ({"noise": levymc.noises.truncated(3.0)}, TypeError, "`noise` must be stable"),
    ],
    ids=str,
)
def test_refusals(options, error, message):
    with pytest.raises(error, match=message):
        motion(**options)
