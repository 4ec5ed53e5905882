"""The fast matrix factorisation: the law of its step by every backend, and its promises."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate
from tests.bounds import binomial_range, dkw_bound, hoeffding_bound
from tests.models.kernels import needs_native

import levymc
from levymc.models.factorization._data import sort_ratings
from levymc.models.factorization._fast import batch_counts
from levymc.run import _store

NUM_USERS, NUM_ITEMS, NUM_RATINGS, RANK = 70, 12, 600, 3
BACKENDS = [pytest.param("native", marks=needs_native), "jax"]
every_backend = pytest.mark.parametrize("backend", BACKENDS)


def make_ratings():
    generator = np.random.default_rng(0)
    users = generator.integers(0, NUM_USERS - 3, NUM_RATINGS)  # the last have none
    items = generator.integers(0, NUM_ITEMS, NUM_RATINGS)
    return users, items, generator.integers(1, 6, NUM_RATINGS) / 2


RATINGS = make_ratings()


def make(backend, **options):
    chosen = {"rank": RANK, "batch_size": 200, "step_size": 1e-3, "center": 1.5} | options
    return levymc.models.fast_factorization(
        *RATINGS, NUM_USERS, NUM_ITEMS, backend=backend, **chosen
    )


def make_start(rank=RANK, scale=1.0):
    generator = np.random.default_rng(1)
    return {
        "users": jnp.asarray(scale * generator.normal(size=(NUM_USERS, rank)), jnp.float32),
        "items": jnp.asarray(scale * generator.normal(size=(NUM_ITEMS, rank)), jnp.float32),
    }


def without_noise(data):
    return data._replace(quantiles=jnp.zeros_like(data.quantiles))


def step_once(fast, start, data=None):
    state = fast.algorithm.init(start)
    step = jax.jit(fast.algorithm.step)
    return step(jax.random.key(0), state, fast.data if data is None else data)


def many_steps(fast, start, data, count):
    """One step from the same start by each of many keys."""
    state = fast.algorithm.init(start)
    keys = jax.random.split(jax.random.key(3), count)
    run = jax.jit(lambda data: jax.lax.map(lambda k: fast.algorithm.step(k, state, data), keys))
    return run(data)


def expected_moves(start, weights, setting, steps=(1.0, 1.0)):
    """The drift's move of users and items in float64, for a number of draws of each rating."""
    users, items, values = RATINGS
    a, b = (np.asarray(start[name], np.float64) for name in ("users", "items"))
    errors = weights * setting["tau"] * (values - 1.5 - np.sum(a[users] * b[items], axis=1))
    moves = []
    for table, row, partner, m in ((a, users, b[items], steps[0]), (b, items, a[users], steps[1])):
        gradient = -table
        np.add.at(gradient, row, errors[:, None] * partner)
        norms = np.sum(partner**2, axis=1) * weights * setting["tau"]
        curvature = 1 + np.bincount(row, norms, len(table))
        full = setting["drift"] * m * np.ones(len(table))
        clip = np.minimum(1, 1 / (full * curvature)) if setting["clip"] else np.ones(len(table))
        move = (full * clip)[:, None] * gradient
        moves.append(move / (1 + np.abs(move) / setting["cap"]))
    return moves


def sorted_counts(fast, key):
    """How often each rating, in the order given, is in the batch of a step's key."""
    words = jax.random.bits(key, (2,), jnp.uint32)
    counts = batch_counts(words, fast.data.offsets, NUM_RATINGS, 200)
    found = np.empty(NUM_RATINGS)
    found[np.argsort(RATINGS[0], kind="stable")] = np.asarray(counts)
    return found


@needs_native
@pytest.mark.parametrize("rank", [3, 20])
@pytest.mark.parametrize(
    ("options", "setting"),
    [
        ({}, {}),
        ({"noise_precision": 2.5, "alpha": 1.6}, {"tau": 2.5, "drift": 1e-3 * 1.10}),
        ({"curvature": True, "step_size": 0.05}, {"clip": True, "drift": 0.05}),
        ({"cap": 0.02}, {"cap": 0.02}),
    ],
    ids=["plain", "stable", "clip", "tamed"],
)
def test_the_kernel_makes_the_step_of_its_batch(rank, options, setting):
    """Given the batch, the drift's move is known; both sides move from the old position."""
    fast = make("native", rank=rank, **options)
    start, key = make_start(rank), jax.random.key(0)
    state, _ = step_once(fast, start, without_noise(fast.data))
    alpha = options.get("alpha", 2.0)
    scale = math.gamma(alpha - 1) / math.gamma(alpha / 2) ** 2
    known = {"tau": 1.0, "drift": 1e-3, "clip": False, "cap": math.inf} | setting
    known["drift"] = options.get("step_size", 1e-3) * scale
    weights = sorted_counts(fast, key) * NUM_RATINGS / 200
    moves = expected_moves(start, weights, known)
    for name, move in zip(("users", "items"), moves, strict=True):
        moved = np.asarray(state.position[name])
        assert np.allclose(moved[:, :rank] - start[name], move, atol=2e-6)
        assert np.all(moved[:, rank:] == 0)


@every_backend
@pytest.mark.parametrize("curvature", [False, True])
@pytest.mark.often("False-jax", "True-native")
def test_the_drift_is_unbiased(backend, curvature):
    """Mean move over 400 batches against the full gradient, as z-scores of all coordinates.

    With the clip at a step so small that it does nothing.  False alarm: 246 coordinates beyond
    7.5 standard errors, below 1e-9 (means of 400, nearly normal).  Detects: a gradient off by half
    a standard deviation of a batch's, such as one without N/n.
    """
    fast = make(backend, curvature=curvature, step_size=1e-5)
    start, count = make_start(), 400
    states, _ = many_steps(fast, start, without_noise(fast.data), count)
    known = {"tau": 1.0, "drift": 1e-5, "clip": False, "cap": math.inf}
    moves = expected_moves(start, np.ones(NUM_RATINGS), known)
    for name, move in zip(("users", "items"), moves, strict=True):
        seen = np.asarray(states.position[name], np.float64)[:, :, :RANK] - start[name]
        error = np.std(seen, axis=0) / math.sqrt(count) + 1e-8
        assert np.max(np.abs(np.mean(seen, axis=0) - move) / error) < 7.5


@every_backend
@pytest.mark.parametrize(("alpha", "truncation"), [(2.0, None), (1.6, None), (1.4, 5.0)])
@pytest.mark.often(
    "2.0-None-native", "1.6-None-native", "1.6-None-jax", "1.4-5.0-native", "1.4-5.0-jax"
)
def test_the_noise_is_stable(backend, alpha, truncation):
    """Characteristic function of a step from zero, where there is no drift, on ~23 000 variables.

    False alarm: 1e-9 (Hoeffding, six frequencies; tails: exact binomial).  Detects: a scale off by
    6 %, or a tail beyond the 0.999-quantile that is twice as heavy.
    """
    eta, rank, draws = 0.01, 40, 7
    fast = make(backend, alpha=alpha, truncation=truncation, step_size=eta, rank=rank)
    start = jax.tree.map(jnp.zeros_like, make_start(rank))
    states, info = many_steps(fast, start, fast.data, draws)
    tables = [np.asarray(states.position[name])[:, :, :rank] for name in ("users", "items")]
    noise = np.concatenate([table.ravel() for table in tables]).astype(np.float64)
    noise /= eta ** (1 / alpha)
    assert np.unique(noise).size > 0.99 * noise.size  # no word is used twice
    assert np.isclose(np.max(np.abs(noise)) * eta ** (1 / alpha), np.max(info.largest_jump))
    inside = 1.0
    if truncation is not None:
        assert np.max(np.abs(noise)) <= truncation
        inside = 1 - 2 * float(levymc.stable.sf(truncation, alpha))
    for frequency in (0.3, 1.0, 2.0):
        expected = math.exp(-(frequency**alpha))
        if truncation is not None:
            nodes = np.linspace(-truncation, truncation, 4001)
            density = np.asarray(levymc.stable.pdf(nodes, alpha)) / inside
            expected = integrate.simpson(np.cos(frequency * nodes) * density, x=nodes)
        bound = hoeffding_bound(noise.size, 1e-10)
        assert abs(np.mean(np.cos(frequency * noise)) - expected) < bound
        assert abs(np.mean(np.sin(frequency * noise))) < bound
    share = 1e-3 if truncation is None else 0.05
    beyond = float(levymc.stable.ppf(1 - (share * inside + 1 - inside) / 2, alpha))
    fewest, most = binomial_range(noise.size, share, 1e-10)
    assert fewest <= np.sum(np.abs(noise) > beyond) <= most


@needs_native
def test_backends_agree_in_law():
    """Two coordinates after three steps with everything on, 1500 runs by each backend.

    False alarm: 1e-9 (Dvoretzky–Kiefer–Wolfowitz, twice).  Detects: distribution functions that
    differ by 0.17 anywhere.
    """
    options = {"alpha": 1.7, "curvature": True, "cap": 0.5, "step_size": 0.02, "biases": True}
    m = {"users": np.linspace(0.5, 2, NUM_USERS), "items": np.linspace(2, 0.5, NUM_ITEMS)}
    samples = []
    for backend in ("native", "jax"):
        fast = make(backend, preconditioner=m, **options)

        def chain(key, fast=fast):
            state = fast.algorithm.init(make_start())
            for part in jax.random.split(key, 3):
                state, _ = fast.algorithm.step(part, state, fast.data)
            return state.position["users"][1, 0], state.position["items"][2, 4]

        seed = 5 if backend == "native" else 6
        run = jax.jit(lambda keys, chain=chain: jax.lax.map(chain, keys))
        samples.append(np.asarray(run(jax.random.split(jax.random.key(seed), 1500))))
    for one, two in zip(*samples, strict=True):
        points = np.concatenate([one, two])
        cdfs = [np.mean(sample[:, None] <= points, axis=0) for sample in (one, two)]
        assert np.max(np.abs(cdfs[0] - cdfs[1])) < 2 * dkw_bound(1500, 2.5e-10)


@needs_native
def test_threads_change_no_bit():
    """Also with fewer users than the kernel takes at once, and with a clip."""
    for options in ({}, {"curvature": True, "alpha": 1.5}, {"rank": 20}):
        start = make_start(options.get("rank", RANK))
        results = [
            step_once(make("native", num_threads=count, **options), start) for count in (1, 2, 3, 9)
        ]
        for other in results[1:]:
            for one, two in zip(jax.tree.leaves(results[0]), jax.tree.leaves(other), strict=True):
                assert np.array_equal(one, two)


@needs_native
@pytest.mark.parametrize("instructions", ["avx2", "portable"])
@pytest.mark.parametrize(
    "options",
    [{}, {"curvature": True, "alpha": 1.5}, {"rank": 20, "cap": 0.1}, {"biases": True}],
    ids=["plain", "clip", "tamed", "biases"],
)
def test_instruction_sets_agree_to_rounding(monkeypatch, instructions, options):
    """The same random numbers, and the same report; on a machine without them, the same twice."""
    fast, start = make("native", **options), make_start(options.get("rank", RANK))
    best = step_once(fast, start)
    words = jnp.array([3, 4], jnp.uint32)
    counts = batch_counts(words, fast.data.offsets, NUM_RATINGS, 200)
    monkeypatch.setenv("LEVYMC_NATIVE_ISA", instructions)
    other = step_once(fast, start)
    assert np.array_equal(counts, batch_counts(words, fast.data.offsets, NUM_RATINGS, 200))
    for one, two in zip(jax.tree.leaves(best), jax.tree.leaves(other), strict=True):
        assert np.allclose(one, two, rtol=1e-5, atol=2e-6)


@needs_native
@pytest.mark.parametrize("instructions", [None, "avx2", "portable"])
def test_many_values_and_wide_items_change_nothing(monkeypatch, instructions):
    """More values than registers hold, items beyond 16 bits, and several blocks of ratings."""
    if instructions:
        monkeypatch.setenv("LEVYMC_NATIVE_ISA", instructions)
    generator = np.random.default_rng(2)
    count, num_users = 40_000, 90
    users, items = generator.integers(0, num_users, count), generator.integers(0, 50, count)
    values = generator.integers(0, 200, count) / 100
    key, moved = jax.random.key(5), []
    for shift, num_items in ((0, 50), (70_000, 70_050)):
        fast = levymc.models.fast_factorization(
            users, items + shift, values, num_users, num_items, rank=2, batch_size=9_000,
            step_size=1e-4, backend="native",
        )  # fmt: skip
        assert fast.data.rated.dtype == (jnp.uint32 if shift else jnp.uint16)
        start = {"users": np.ones((num_users, 2)), "items": np.zeros((num_items, 2))}
        start["items"][shift:] = generator.normal(size=(50, 2)) if not shift else moved[0][2]
        start = {name: jnp.asarray(table, jnp.float32) for name, table in start.items()}
        state = fast.algorithm.init(start)
        state, _ = fast.algorithm.step(key, state, without_noise(fast.data))
        words = jax.random.bits(key, (2,), jnp.uint32)
        counts = np.asarray(batch_counts(words, fast.data.offsets, count, 9_000), np.float64)
        order = np.argsort(users, kind="stable")
        moved.append((state.position, counts, np.asarray(start["items"])[shift:]))
        rows = np.asarray(start["items"], np.float64)[items[order] + shift]
        errors = counts * count / 9_000 * (values[order] - rows.sum(axis=1))
        gradient = np.full((num_users, 2), -1.0)
        np.add.at(gradient, users[order], errors[:, None] * rows)
        assert np.allclose(state.position["users"][:, :2], 1 + 1e-4 * gradient, atol=2e-5)
    (narrow, *_), (wide, *_) = moved
    assert np.array_equal(narrow["users"], wide["users"])
    assert np.array_equal(narrow["items"], wide["items"][70_000:])


@every_backend
def test_biases_are_columns_that_stay_one(backend):
    fast = make(backend, biases=True, alpha=1.5)
    state, _ = step_once(fast, make_start())
    users, items = (np.asarray(state.position[name]) for name in ("users", "items"))
    assert users.shape[1] == items.shape[1] == 16
    assert np.all(users[:, RANK + 1] == 1)
    assert np.all(items[:, RANK] == 1)
    assert np.all(users[:, RANK] != 0)
    assert np.all(items[:, RANK + 1] != 0)
    assert not np.any(users[:, RANK + 2 :])
    assert not np.any(items[:, RANK + 2 :])


@needs_native
def test_a_row_alone_moves_by_its_preconditioner():
    """Without noise, at m = 3 for some rows: their move is three times as long."""
    m = {"users": np.where(np.arange(NUM_USERS) < 10, 3.0, 1.0), "items": np.ones(NUM_ITEMS)}
    moves = []
    for options in ({}, {"preconditioner": m}):
        fast, start = make("native", **options), make_start()
        state, _ = step_once(fast, start, without_noise(fast.data))
        moves.append(np.asarray(state.position["users"])[:, :RANK] - start["users"])
    assert np.allclose(moves[1], moves[0] * m["users"][:, None], atol=1e-6)


@every_backend
def test_a_step_that_overflows_is_not_made(backend):
    fast, start = make(backend), make_start(scale=1e20)
    state, info = step_once(fast, start)
    assert bool(info.is_divergent)
    assert int(state.step) == 1
    for name in ("users", "items"):
        assert np.array_equal(state.position[name][:, :RANK], start[name])


@every_backend
def test_schedules_and_info(backend):
    fast = make(backend, step_size=levymc.schedules.polynomial(0.01, 0.5), cap=0.1)
    state, step = fast.algorithm.init(make_start()), jax.jit(fast.algorithm.step)
    state, info = step(jax.random.key(0), state, fast.data)
    assert np.isclose(info.step_size, 0.1)
    assert float(info.acceptance_rate) == 1
    assert not bool(info.is_divergent)
    assert 0 < float(info.taming) < 1
    _, info = step(jax.random.key(1), state, fast.data)
    assert np.isclose(info.step_size, math.sqrt(0.005))


def run_chains(fast, **options):
    start = make_start()
    starts = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), start)
    return levymc.sample(
        fast.algorithm,
        jax.random.key(0),
        starts,
        60,
        minibatches=levymc.whole(fast.data),
        progress=False,
        **options,
    )


def assert_equal(one, other):
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert np.array_equal(left, right)


@needs_native
def test_a_stored_run_goes_on_bit_for_bit(tmp_path, monkeypatch):
    fast = make("native", alpha=1.8, curvature=True)
    whole = run_chains(fast, thin=2)
    append = _store._Sink.append

    def interrupt(self, part):
        append(self, part)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_store._Sink, "append", interrupt)
        part = run_chains(fast, thin=2, store=tmp_path / "run")
    assert part.is_interrupted
    resumed = levymc.resume(tmp_path / "run", progress=False)
    assert_equal(resumed.positions, whole.positions)
    assert_equal(resumed.info, whole.info)


@needs_native
def test_chains_do_not_depend_on_each_other():
    fast = make("native")
    both = run_chains(fast)
    alone = levymc.sample(
        fast.algorithm,
        jax.random.key(0),
        jax.tree.map(lambda leaf: leaf[None], make_start()),
        60,
        minibatches=levymc.whole(fast.data),
        progress=False,
    )
    for name in ("users", "items"):
        assert np.array_equal(alone.positions[name][0], both.positions[name][0])


def test_algorithms_that_differ_in_their_step_alone_have_one_structure():
    """So that the step is an input of one compiled program."""
    one, other = (jax.tree.structure(make("jax", step_size=eta).algorithm) for eta in (0.1, 0.2))
    assert one == other
    assert one != jax.tree.structure(make("jax", alpha=1.5).algorithm)


def test_a_start_may_come_with_a_key():
    algorithm = make("jax").algorithm
    assert_equal(algorithm.init(make_start(), jax.random.key(0)), algorithm.init(make_start()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 601}, "`batch_size` must be at most the 600 ratings, got 601"),
        ({"alpha": 1.0}, "`alpha` must lie in"),
        ({"rank": 600}, "`rank` must be at most 512"),
        ({"rank": 62, "biases": True}, "`rank` must be at most 61"),
        ({"cap": -1.0}, "`cap` must be positive"),
        ({"truncation": 0.0}, "`truncation` must be positive"),
        ({"noise_precision": 0.0}, "`noise_precision` must be positive"),
        (
            {"preconditioner": {"users": np.ones(3), "items": np.ones(NUM_ITEMS)}},
            r"`preconditioner\['users'\]` must have shape \(70,\), got \(3,\)",
        ),
    ],
)
def test_arguments_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make("jax", **options)


def test_ratings_that_make_no_sense_are_refused():
    users, items, values = RATINGS
    build = levymc.models.fast_factorization
    more = {"batch_size": 10, "step_size": 1e-3, "backend": "jax"}
    with pytest.raises(ValueError, match="`users` must lie between 0 and 9"):
        build(users, items, values, 10, NUM_ITEMS, **more)
    with pytest.raises(TypeError, match="`items` must be integers"):
        build(users, items + 0.5, values, NUM_USERS, NUM_ITEMS, **more)
    with pytest.raises(ValueError, match="at most 256 different values, got 600"):
        build(users, items, np.arange(600.0), NUM_USERS, NUM_ITEMS, **more)
    with pytest.raises(ValueError, match="three arrays of one length"):
        build(users[1:], items, values, NUM_USERS, NUM_ITEMS, **more)
    with pytest.raises(TypeError, match="`preconditioner` must have one number a row"):
        make("jax", preconditioner=2.0)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "float16"])
@pytest.mark.parametrize("center", [3, 3.53])
def test_small_dtypes_of_ratings_are_centered_exactly(dtype, center):
    """In uint8 1 - 3 is 254, and in float16 3.53 is 3.5293."""
    places, values = np.zeros(5, int), np.arange(1, 6)
    found = sort_ratings(places, places, values.astype(dtype), 1, 1, center)
    np.testing.assert_allclose(found.levels[:5], values - center, rtol=1e-6)


@pytest.mark.parametrize("name", ["users", "items", "ratings"])
def test_masked_ratings_are_not_taken_for_what_is_below_the_mask(name):
    given = dict(zip(("users", "items", "ratings"), RATINGS, strict=True))
    given[name] = np.ma.masked_array(given[name], np.arange(len(given[name])) == 7)
    with pytest.raises(ValueError, match=f"`{name}` must have no masked entries, got 1 of 600"):
        levymc.models.fast_factorization(
            **given, num_users=NUM_USERS, num_items=NUM_ITEMS, batch_size=10, step_size=1e-3,
            backend="jax",
        )  # fmt: skip


def test_starts_that_do_not_fit_are_refused():
    init = make("jax").algorithm.init
    start = make_start()
    with pytest.raises(ValueError, match=r"must have shape \(70, 3\), or \(70, 16\)"):
        init(start | {"users": start["users"][1:]})
    with pytest.raises(TypeError, match="must be float32, got float64"):
        init(jax.tree.map(lambda leaf: leaf.astype(jnp.float64), start))
    with pytest.raises(TypeError, match="`position` must be"):
        init(start["users"])
