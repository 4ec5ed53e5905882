"""Observers: each against NumPy on the positions that were kept, with the weights of the steps."""

import functools
import inspect
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc import integrators, schedules
from levymc.run import _engine, _iterate, observe

KEY = jax.random.key(5)
STARTS = jnp.linspace(-1, 1, 8).reshape(4, 2)


def normal(position):
    return -jnp.sum(position**2) / 2


def squares(position):
    return {"s": jnp.sum(position * position)}


def itself(position):
    return position


def double(position):
    return 2 * position


FALLING = levymc.ula(normal, schedules.polynomial(0.5, 0.5))  # whose noise compiles quickly


def run(algorithm=FALLING, starts=STARTS, num_steps=57, **options):
    return levymc.sample(algorithm, KEY, starts, num_steps, progress=False, **options)


TRUTH = np.array([0.3, -0.2])
EDGES = [-1.0, 0.0, 0.5]
ALL = {
    "mean": observe.mean(),
    "square": observe.mean(squares),
    "error": observe.mean_error(double, TRUTH),
    "histogram": observe.histogram(EDGES),
    "hops": observe.hops(-0.2, 0.2),
    "divergences": observe.divergences(),
}


@pytest.fixture(scope="module")
def seen():
    """A run in which all of them see every step, and whose positions are kept."""
    return run(observe=ALL, burn_in=6, keep=True)


def weighted_mean(values, weights):
    shares = weights / weights.sum(axis=1, keepdims=True)
    return np.einsum("cd,cd...->c...", shares, values)


def test_means_are_weighted_by_the_steps(seen):
    np.testing.assert_allclose(
        seen.observed["mean"], weighted_mean(seen.positions, seen.weights), rtol=1e-12
    )
    of_squares = weighted_mean((seen.positions**2).sum(axis=2), seen.weights)
    np.testing.assert_allclose(seen.observed["square"]["s"], of_squares, rtol=1e-12)
    np.testing.assert_allclose(seen.observed["mean"], seen.mean(), rtol=1e-12)
    uniform = seen.positions.mean(axis=1)
    assert np.max(np.abs(seen.observed["mean"] - uniform)) > 1e-3  # weights matter


def test_the_error_of_the_mean_is_its_root_mean_square(seen):
    means = weighted_mean(2 * seen.positions, seen.weights)
    expected = np.sqrt(((means - TRUTH) ** 2).mean(axis=1))
    np.testing.assert_allclose(seen.observed["error"], expected, rtol=1e-12)


def test_a_histogram_counts_weights_by_bins(seen):
    bins = np.searchsorted(EDGES, seen.positions, side="right")
    each = np.stack([bins == place for place in range(4)], axis=-1)
    np.testing.assert_allclose(
        seen.observed["histogram"], weighted_mean(each, seen.weights), rtol=1e-12, atol=1e-15
    )


def hops_of(path, low, high, before):
    """How often a path changes sides, where it has been on one of them."""
    sides = [-1 if x < low else 1 for x in [before, *path] if x < low or x > high]
    return int(np.sum(np.diff(sides) != 0))


def test_hops_are_changes_of_sides(seen):
    """From the start of the run on: the first side is that of the initial position."""
    expected = [
        [hops_of(seen.positions[chain, :, d], -0.2, 0.2, STARTS[chain, d]) for d in range(2)]
        for chain in range(4)
    ]
    np.testing.assert_array_equal(seen.observed["hops"], expected)
    assert np.sum(expected) > 8


def test_divergences_are_counted():
    explosive = levymc.flmc(
        normal, 1.0, 2.0, drift=lambda x: -(x**9) * 1e60, integrator=integrators.euler()
    )
    with pytest.warns(UserWarning, match="smaller step size"):
        result = run(explosive, burn_in=3, observe={"count": observe.divergences()})
    np.testing.assert_array_equal(
        result.observed["count"], result.statistics["diverging"].sum(axis=1)
    )
    assert result.num_divergent > 0


def test_no_divergences_are_counted_where_there_are_none(seen):
    np.testing.assert_array_equal(seen.observed["divergences"], 0)


def test_positions_are_dropped_unless_asked_for(seen):
    dropped = run(observe=ALL, burn_in=6, thin=3)
    assert dropped.positions is None
    assert dropped.num_draws == 19
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-12),
        dropped.observed,
        seen.observed,
    )
    with pytest.raises(ValueError, match="observe"):
        dropped.mean()
    assert "mean" in repr(dropped)
    # To rounding: another program, which the compiler may fuse in another way.
    np.testing.assert_allclose(seen.positions, run(burn_in=6).positions, rtol=1e-12)


@pytest.mark.parametrize("every", [4, [1, 5, 6, 50], levymc.marks.logarithmic(5)])
def test_observers_may_see_some_steps_only(every, calls_of):
    """Every fourth, those listed, or ever fewer; counted after the burn-in, whatever is kept."""
    everything = run(burn_in=6)
    steps = np.asarray(_iterate.as_marks("observe_every", every, 57).within(0, 57, 57)) - 1
    expected = weighted_mean(everything.positions[:, steps], everything.weights[:, steps])
    calls_of(10)
    for thin in (1, 3):
        result = run(burn_in=6, thin=thin, observe={"mean": observe.mean()}, observe_every=every)
        np.testing.assert_allclose(result.observed["mean"], expected, rtol=1e-12)


def test_observers_that_see_some_steps_resume(tmp_path, calls_of, stopped_after):
    options = {"burn_in": 6, "thin": 3, "observe": {"mean": observe.mean()}, "observe_every": 4}
    whole = run(**options)
    calls_of(8)
    with stopped_after(4):
        part = run(store=tmp_path / "run", **options)
    assert part.is_interrupted
    resumed = levymc.resume(tmp_path / "run", progress=False)
    np.testing.assert_array_equal(resumed.observed["mean"], whole.observed["mean"])


def far_from_zero(position):
    return 1 / position


class Late:
    """Stays at zero for two steps, and at two from then on; the state is (position, number)."""

    def init(self, position):
        return levymc.algorithms.State(position, jnp.int32(0))

    def step(self, key, state):
        number = state.step + 1
        position = jnp.where(number > 2, 2.0, 0.0 * state.position)
        return levymc.algorithms.State(position, number), None


STILL = Late()


def test_what_is_not_seen_does_not_count_even_if_it_is_infinite():
    """The burn-in starts at 0, where the observed function is infinite."""
    observers = {
        "mean": observe.mean(far_from_zero),
        "predictive": observe.predictive(far_from_zero),
    }

    result = run(STILL, jnp.zeros(2), 4, burn_in=2, observe=observers)
    np.testing.assert_array_equal(result.observed["mean"], [0.5, 0.5])
    np.testing.assert_array_equal(result.observed["predictive"]["mean"], [0.5, 0.5])
    np.testing.assert_array_equal(result.observed["predictive"]["deviation"], [0.0, 0.0])


def primitives(jaxpr):
    """The names of all operations, also those of nested programs but branches."""
    for operation in jaxpr.eqns:
        yield operation.primitive.name
        for value in operation.params.values():
            inner = getattr(value, "jaxpr", None)
            if inner is not None:
                yield from primitives(inner)


def test_steps_that_observers_do_not_see_do_not_compute_their_update():
    """A tangent, which nothing else needs, is found within the branches of a condition only."""

    def names(every):
        ready = _iterate.ready(
            _iterate.start(
                FALLING,
                KEY,
                STARTS,
                60,
                thin=1,
                burn_in=0,
                minibatches=None,
                observe={"tan": observe.mean(jnp.tan)},
                observe_every=every,
                keep=None,
            )
        )
        call = ready.plan.call(0, 10, ready.program.slots, ready.program.block)
        traced = jax.make_jaxpr(inspect.unwrap(ready.program.advance))(
            ready.parameters, ready.carry, ready.keys, [], call
        )
        return set(primitives(traced.jaxpr)), str(traced)

    always, _ = names(1)
    assert "tan" in always
    sometimes, text = names(3)
    assert "cond" in sometimes
    assert "tan" not in sometimes
    assert " tan " in text


def test_observed_quantiles_are_within_their_relative_error():
    levels = (0.05, 0.3, 0.5, 0.95)
    observers = {"q": observe.quantiles(levels, relative_error=0.03)}
    seen = run(num_steps=4000, observe=observers, keep=True)
    for chain, coordinate in itertools.product(range(4), range(2)):
        expected = np.quantile(
            seen.positions[chain, :, coordinate],
            levels,
            weights=seen.weights[chain],
            method="inverted_cdf",
        )
        np.testing.assert_allclose(seen.observed["q"][chain, coordinate], expected, rtol=0.0301)


def test_the_largest_quantile_is_of_what_was_seen():
    """Sums up to empty bins differ by rounding: before, the largest of 3.3 was 4.6, or 10⁸."""
    levels = (1e-60, 0.5, 1.0)
    for seed in range(5):
        source = np.random.default_rng(seed)
        path = jnp.asarray(source.normal(size=3000), jnp.float32)
        weights = jnp.asarray(source.uniform(0.01, 1.0, 3000), jnp.float32)
        found = seen_one_by_one(observe.quantiles(levels), path, weights)
        expected = [path.min(), found[1], path.max()]
        np.testing.assert_allclose(found, expected, rtol=0.0201)


def test_quantiles_of_sizes_far_apart_are_within_their_relative_error():
    """Before, a size of 10²⁰ was infinite: its ratio to the smallest is, in float32."""
    observer = observe.quantiles([0.3, 0.6, 0.9], smallest=1e-25, largest=1e25)
    path = jnp.tile(jnp.asarray([1e-20, 1.0, 1e20], jnp.float32), 4)
    found = seen_one_by_one(observer, path, 1.0)
    np.testing.assert_allclose(found, [1e-20, 1.0, 1e20], rtol=0.0201)


def test_what_is_not_a_number_is_in_no_bin():
    """Before, it counted as zero, or as larger than the last edge."""
    path = jnp.asarray([0.3, jnp.nan, 0.7], jnp.float32)
    for observer in (observe.quantiles([0.1, 0.9]), observe.histogram([0.0, 0.5])):
        assert np.all(np.isnan(seen_one_by_one(observer, path, 1.0)))
        assert np.all(np.isfinite(seen_one_by_one(observer, path, jnp.asarray([1.0, 0.0, 1.0]))))


def test_edges_of_a_histogram_are_not_rounded_to_sixteen_bits():
    path = jnp.ones(4, jnp.bfloat16)
    shares = seen_one_by_one(observe.histogram([1.001]), path, 1.0)
    np.testing.assert_array_equal(shares, [1.0, 0.0])


def is_right(position):
    return position > 0.1


def whole(position):
    return is_right(position).astype(jnp.int32)


def share(position):
    return whole(position).astype(float)


def of_each_kind(of):
    """All observers of a function of the position."""
    return {
        "mean": observe.mean(lambda position: {"a": of(position)}),
        "error": observe.mean_error(of, TRUTH),
        "predictive": observe.predictive(of),
        "histogram": observe.histogram([0.5], of),
        "quantiles": observe.quantiles([0.1, 0.9], of),
        "hops": observe.hops(0.5, 0.5, of),
    }


@pytest.mark.parametrize("of", [whole, is_right])
def test_whole_numbers_and_truth_values_are_observed_as_numbers(of):
    """Before, a mean stayed at the first of them, and a histogram at zero, without a word."""
    expected = run(observe=of_each_kind(share)).observed
    assert 0 < np.min(expected["mean"]["a"]) < np.max(expected["mean"]["a"]) < 1
    jax.tree.map(np.testing.assert_array_equal, run(observe=of_each_kind(of)).observed, expected)


@pytest.mark.parametrize("truth", [1.0, TRUTH[:, None], TRUTH[:-1]])
def test_an_error_is_asked_for_the_truth_of_each_prediction(truth):
    """A column of them would be compared with every prediction each, without a word."""
    with pytest.raises(ValueError, match=r"`truth` must have the shape of what `of` returns"):
        run(observe={"error": observe.mean_error(double, truth)})


ONE_ARRAY = [observe.quantiles([0.5]), observe.histogram([0.0]), observe.hops(0.0, 1.0)]


@pytest.mark.parametrize("observer", ONE_ARRAY)
def test_one_array_is_asked_for_where_positions_have_several(observer):
    walk = levymc.levy_walk(lambda x: normal(x["a"]) + normal(x["b"]), 1.0)
    with pytest.raises(TypeError, match=r"`of` must return one array .*'b'.* of=lambda position"):
        run(walk, {"a": STARTS, "b": STARTS[:, 0]}, observe={"seen": observer})


@pytest.mark.parametrize("wrong", [lambda x: "x", lambda x: None, lambda x: x * 1j])
def test_what_is_observed_must_be_numbers(wrong):
    for name, observer in of_each_kind(wrong).items():
        if name != "mean":  # whose function here returns it in a dictionary
            with pytest.raises(TypeError, match="`of` must return arrays of real numbers for"):
                run(observe={"seen": observer})
    with pytest.raises(TypeError, match="`of` must return arrays of real numbers for"):
        run(observe={"seen": observe.mean(wrong)})


def seen_one_by_one(observer, values, weights):
    """What an observer says of a path of positions, with a weight for each or for all."""

    @jax.jit
    def observed(values, weights):
        def see(so_far, both):
            return observer.update(so_far, *both), None

        return observer.finish(jax.lax.scan(see, observer.init(values[0]), (values, weights))[0])

    return observed(values, jnp.broadcast_to(jnp.asarray(weights, values.dtype), len(values)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_mean_goes_on_to_move(dtype):
    """Of a path that rises slowly; in float32 each step would change it by less than it holds.

    Before, the mean stood still from some 10⁵ steps on, and in sixteen bits from some hundreds.
    """
    path = jnp.linspace(99.0, 101.0, 400_000, dtype=jnp.float32).astype(dtype)
    exact, to_rounding = np.asarray(path, float), 4 * float(jnp.finfo(dtype).eps)
    close = functools.partial(np.testing.assert_allclose, rtol=to_rounding)
    mean = seen_one_by_one(observe.mean(), path, 0.1)
    assert mean.dtype == path.dtype
    close(np.asarray(mean, float), exact.mean())
    spread = seen_one_by_one(observe.predictive(itself), path, 0.1)
    assert {value.dtype for value in spread.values()} == {path.dtype}
    close(np.asarray(spread["mean"], float), exact.mean())
    np.testing.assert_allclose(
        np.asarray(spread["deviation"], float), exact.std(), rtol=max(1e-4, to_rounding)
    )
    error = seen_one_by_one(observe.mean_error(itself, 90.0), path, 0.1)
    assert error.dtype == path.dtype
    np.testing.assert_allclose(float(error), exact.mean() - 90.0, rtol=10 * to_rounding)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_histogram_goes_on_to_count(dtype):
    """Before, a bin of ones ended at 256 in bfloat16, and at 2048 in float16."""
    path = jnp.tile(jnp.asarray([0.0, 0.0, 1.0, 1.0, 1.0], dtype), 4000)
    shares = seen_one_by_one(observe.histogram([0.5]), path, 1.0)
    np.testing.assert_allclose(shares, [0.4, 0.6], rtol=1e-6)


def test_a_weight_of_zero_changes_no_bit():
    """Nor may what is not seen be looked at: it may be infinite."""
    for observer in of_each_kind(itself).values():
        so_far = observer.init(jnp.ones(2, jnp.float32))
        for value in (0.1, 0.7, 1e-4, 0.3):
            so_far = observer.update(so_far, jnp.full(2, value, jnp.float32), jnp.float32(0.3))
        same = observer.update(so_far, jnp.full(2, jnp.inf, jnp.float32), jnp.float32(0.0))
        jax.tree.map(np.testing.assert_array_equal, same, so_far)


def test_what_has_seen_nothing_says_so():
    """Before, quantiles were -10⁸, and a mean and its interval zero."""
    for name, observer in of_each_kind(itself).items():
        for said in jax.tree.leaves(observer.finish(observer.init(jnp.ones(2)))):
            np.testing.assert_array_equal(said, 0 if name == "hops" else np.nan)


def counting(function):
    traces = []

    def counted(position):
        traces.append(None)
        return function(position)

    return counted, traces


@pytest.mark.parametrize(
    "make",
    [
        lambda: observe.mean(double),
        lambda: observe.histogram([0.0, 1.0], double),
        lambda: observe.hops(-1.0, 1.0, double),
        lambda: observe.quantiles([0.5], double),
        lambda: observe.predictive(double, noise_variance=2.0),
        lambda: observe.divergences(),
        lambda: observe.mean_error(double, TRUTH),
    ],
)
def test_observers_that_are_equal_hash_alike(make):
    assert make() == make()
    assert hash(make()) == hash(make())


def test_observers_that_differ_are_not_equal():
    assert observe.histogram([0.0]) != observe.histogram([1.0])
    assert observe.mean_error(double, TRUTH) != observe.mean_error(double, TRUTH + 1)
    assert observe.mean_error(double, TRUTH) != observe.mean_error(double, TRUTH[:1])
    assert observe.mean_error(double, TRUTH) != observe.mean(double)


def test_another_truth_is_another_error():
    """Also where the array was changed in its place."""
    truth = np.array([0.3, -0.2])
    first = run(num_steps=20, observe={"error": observe.mean_error(double, truth)})
    truth += 1
    second = run(num_steps=20, observe={"error": observe.mean_error(double, truth)})
    means = weighted_mean(2 * run(num_steps=20).positions, first.weights)
    for result, exact in ((first, [0.3, -0.2]), (second, [1.3, 0.8])):
        expected = np.sqrt(((means - exact) ** 2).mean(axis=1))
        np.testing.assert_allclose(result.observed["error"], expected, rtol=1e-12)


def test_equal_observers_share_a_program():
    target, traces = counting(normal)
    algorithm = levymc.ula(target, 0.1)
    run(algorithm, num_steps=20, observe={"a": observe.histogram([0.0, 1.0])})
    first, programs = len(traces), _engine.compile_program.cache_info().misses
    again = run(algorithm, num_steps=30, observe={"b": observe.histogram([0.0, 1.0])})
    assert list(again.observed) == ["b"]
    assert _engine.compile_program.cache_info().misses == programs
    assert len(traces) == first + 1  # to see that it computes the same


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: observe.quantiles([1.5]), ("probabilities", "1.5")),
        (lambda: observe.quantiles([0.5], largest=1e-9), ("largest",)),
        (lambda: observe.histogram([1.0, 0.0]), ("edges", "increase")),
        (lambda: observe.histogram([]), ("edges", "increase")),
        (lambda: observe.histogram([0.0, np.nan]), ("edges", "finite")),
        (lambda: observe.hops(1.0, -1.0), ("low", "high", "Exchange")),
        (lambda: observe.hops(np.nan, 1.0), ("low", "finite")),
        (lambda: observe.predictive(double, level=1.0), ("level", "1.0")),
        (lambda: observe.predictive(double, noise_variance=-1.0), ("noise_variance", "-1.0")),
        (
            lambda: inspect.unwrap(levymc.sample)(FALLING, KEY, STARTS, 9, observe={"m": jnp.mean}),
            ("observe", "levymc.observe.mean()"),
        ),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
