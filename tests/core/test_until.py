"""Runs that end by a rule: at the same draw, in memory and in a store, however they are cut."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc import marks
from levymc.run import _iterate, _store

KEY = jax.random.key(5)
STARTS = jnp.zeros((4, 2), jnp.float32)
NUM_STEPS = 2000


def normal(position):
    return -jnp.sum(position**2) / 2


WALK = levymc.levy_walk(normal, 1.0)


def run(num_steps=NUM_STEPS, **options):
    given = {"thin": 5, "burn_in": 7, "progress": False, **options}
    return levymc.sample(WALK, KEY, STARTS, num_steps, **given)


def often_far(result):
    return np.sum(result.positions > 2) >= 20


@pytest.fixture(scope="module")
def whole():
    """All draws, without a rule."""
    return run()


def assert_prefix(result, whole):
    """The first draws of the whole run, bit for bit."""
    count = result.num_draws
    leaves = zip(
        jax.tree.leaves((result.positions, result.info)),
        jax.tree.leaves((whole.positions, whole.info)),
        strict=True,
    )
    for some, every in leaves:
        np.testing.assert_array_equal(some, every[:, :count], strict=True)
    np.testing.assert_array_equal(result.steps, whole.steps[:count])
    assert not result.is_interrupted


def expected_end(whole):
    """Draws until the first look at which the rule is met, by hand."""
    counts = np.cumsum(np.sum(whole.positions > 2, axis=(0, 2)))
    looks = sorted({-(-NUM_STEPS * look // 128) // 5 for look in range(1, 129)} - {0})
    return next(count for count in looks if counts[count - 1] >= 20)


def test_a_rule_cannot_change_the_draws(whole):
    """Before, one that sorted or centred them in their place did, for itself and in the end."""

    def centring(result):
        positions = result.positions
        positions -= 0.0

    def sorting(result):
        result.positions.sort(axis=1)
        return False

    def reading(result):
        return result.num_draws == whole.num_draws

    for rule in (centring, sorting):
        with pytest.raises(ValueError, match="read-only"):
            run(until=rule)
    assert run(until=reading).positions.flags.writeable


def test_a_run_ends_by_its_rule(whole):
    result = run(until=often_far)
    assert_prefix(result, whole)
    assert 20 < result.num_draws < 350
    assert result.num_draws == expected_end(whole)


@pytest.mark.parametrize("steps", [3, 64, 1000])
def test_where_it_ends_does_not_depend_on_calls(steps, calls_of, whole):
    calls_of(steps)
    assert_prefix(run(until=often_far), whole)
    assert run(until=often_far).num_draws == expected_end(whole)


def test_a_rule_that_is_never_met_changes_nothing(whole):
    result = run(until=lambda result: False)
    assert_prefix(result, whole)
    assert result.num_draws == whole.num_draws


def test_a_rule_sees_each_look_once(whole):
    seen = []
    run(until=lambda result: seen.append(result) or False)
    looks = [result.steps[-1] for result in seen]
    assert 120 < len(looks) < 128  # the last is the end
    assert np.all(np.diff(looks) >= 15)
    assert np.all(np.diff(looks) <= 20)
    for result in seen[::40]:
        assert_prefix(result, whole)


LOOKS = {
    "every step": (marks.Every(1), 1000, list(-(-1000 * np.arange(1, 128) // 128))),
    "few draws": (marks.Every(400), 1000, [400, 800]),
    "as many draws as steps": (marks.Every(1), 5, [1, 2, 3, 4]),
    "one draw": (marks.Every(1000), 1000, []),
    "listed": (marks.At((3, 4, 5, 1000)), 1280, [5, 1000]),
    "more than numbers have bits": (marks.Every(2**55), 2**62, [2**55 * k for k in range(1, 128)]),
}


@pytest.mark.parametrize(("kept", "num_steps", "looks"), LOOKS.values(), ids=LOOKS)
def test_looks_are_spread_evenly(kept, num_steps, looks):
    """But are at draws, never two at one, and not at the end."""
    assert list(_iterate.Plan(4, num_steps, 7, kept, None).looks().steps) == looks


def test_a_rule_sees_what_is_observed():
    observe = {"mean": levymc.observe.mean()}
    seen = []
    run(100, observe=observe, keep=True, until=lambda r: seen.append(r.observed["mean"]) or False)
    assert seen[0].shape == (4, 2)
    assert np.any(seen[0] != seen[-1])


# In a store.


def test_a_store_ends_where_memory_does(tmp_path, whole):
    result = run(store=tmp_path / "run", until=often_far)
    assert_prefix(result, whole)
    assert result.num_draws == expected_end(whole)
    for again in (levymc.load(tmp_path / "run"), levymc.resume(tmp_path / "run", progress=False)):
        assert_prefix(again, whole)
        assert again.num_draws == result.num_draws


@pytest.mark.nightly
def test_a_store_that_its_rule_ended_can_be_extended(tmp_path, whole):
    ended = run(store=tmp_path / "run", until=often_far)
    longer = levymc.resume(tmp_path / "run", num_steps=NUM_STEPS, progress=False)
    assert_prefix(longer, whole)
    assert longer.num_draws == whole.num_draws > ended.num_draws


@pytest.mark.nightly
def test_listed_steps_can_be_made_up_for(tmp_path):
    """Those that the rule left out, but no others."""
    listed = list(range(10, 401, 10))
    short = run(400, thin=listed, store=tmp_path / "run", until=lambda r: r.num_draws >= 10)
    assert short.num_draws == 10
    with pytest.raises(ValueError, match=r"`num_steps`.*at most 400, got 401.*listed"):
        levymc.resume(tmp_path / "run", num_steps=401, progress=False)
    longer = levymc.resume(tmp_path / "run", num_steps=400, progress=False)
    np.testing.assert_array_equal(longer.steps, listed)


@pytest.mark.nightly
def test_an_interrupted_store_ends_by_its_rule(tmp_path, calls_of, stopped_after, whole):
    calls_of(50)
    with stopped_after(9):
        part = run(store=tmp_path / "run", until=often_far)
    assert part.is_interrupted
    assert levymc.load(tmp_path / "run").is_interrupted
    result = levymc.resume(tmp_path / "run", until=often_far, progress=False)
    assert_prefix(result, whole)
    assert result.num_draws == expected_end(whole)


@pytest.mark.nightly
def test_a_rule_is_asked_again_where_a_process_died_before_it_could_answer(tmp_path, whole):
    """As after a kill between the commit of the last draws and that of the end."""

    def die(result):
        if often_far(result):
            raise KeyboardInterrupt
        return False

    part = run(store=tmp_path / "run", until=die)
    assert part.is_interrupted
    assert part.num_draws == expected_end(whole)
    result = levymc.resume(tmp_path / "run", until=often_far, progress=False)
    assert_prefix(result, whole)
    assert result.num_draws == part.num_draws
    assert not levymc.load(tmp_path / "run").is_interrupted


@pytest.mark.nightly
def test_a_rule_that_fails_loses_nothing(tmp_path, whole):
    def fail(result):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(store=tmp_path / "run", until=fail)
    assert levymc.load(tmp_path / "run").num_draws == 3
    assert_prefix(levymc.resume(tmp_path / "run", progress=False), whole)


# What is refused.


@pytest.mark.parametrize("until", [3, "r_hat < 1.01", lambda: True])
def test_what_is_no_rule_is_refused(until):
    with pytest.raises(TypeError, match=r"`until` must be a function"):
        run(until=until)


@pytest.mark.parametrize("answer", [None, 0.3, "yes", np.array([True, False]), [True]])
def test_an_answer_that_is_neither_yes_nor_no_is_refused(answer):
    with pytest.raises(TypeError, match=r"`until` must return True or False, got"):
        run(until=lambda result: answer)


@pytest.mark.parametrize("answer", [True, 1, np.True_, np.array(True), jnp.bool_(True)])
def test_answers_of_any_kind_of_truth(answer):
    assert run(until=lambda result: answer).num_draws == 3


def test_a_rule_needs_draws(tmp_path):
    observe = {"mean": levymc.observe.mean()}
    with pytest.raises(ValueError, match=r"`until` must be None where no draws.*keep=True"):
        run(observe=observe, until=often_far)
    run(100, observe=observe, store=tmp_path / "run")
    with pytest.raises(ValueError, match=r"`until` must be None where no draws.*keep=True"):
        levymc.resume(tmp_path / "run", until=often_far, progress=False)


def test_a_rule_cannot_make_up_for_a_run_that_is_stopped_before_its_first_draw(
    tmp_path, calls_of, stopped_after
):
    calls_of(2)
    with stopped_after(2), pytest.raises(_store.StoreError, match="no draws yet"):
        run(store=tmp_path / "run", until=often_far)
    assert levymc.resume(tmp_path / "run", until=lambda result: True, progress=False).num_draws == 3


def test_enough_waits_for_bulk_tail_and_rhat():
    rng = np.random.default_rng(0)
    independent = levymc.Result(rng.normal(size=(4, 500, 2)), np.ones((4, 500)), None)
    assert levymc.enough(400)(independent)
    assert not levymc.enough(3000)(independent)  # there are 2000
    apart = independent.positions + np.arange(4.0)[:, None, None]
    assert not levymc.enough(1)(levymc.Result(apart, np.ones((4, 500)), None))
    assert levymc.enough(1, rhat=10)(levymc.Result(apart, np.ones((4, 500)), None))
    still = independent.positions.copy()
    still[..., 1] = 1.0
    with pytest.warns(UserWarning, match="All draws of x.1. are equal"):
        assert not levymc.enough(1)(levymc.Result(still, np.ones((4, 500)), None))
    assert not levymc.enough(1)(levymc.Result(rng.normal(size=(4, 3)), np.ones((4, 3)), None))


@pytest.mark.parametrize("num_chains", [1, 2])
@pytest.mark.often("1")
def test_enough_asks_for_as_many_draws_as_it_needs(num_chains):
    """It is asked from the third draw on, of one chain, which is cut into two, as of several."""
    looked = []
    rule = levymc.enough(1, rhat=10)

    def noted(result):
        looked.append((result.num_draws, rule(result)))
        return False

    starts = jnp.zeros(num_chains)
    levymc.sample(WALK, KEY, starts, 300, until=noted, progress=False)
    fewest = 8 if num_chains == 1 else 4
    assert looked[0][0] < 4
    assert not any(answer for count, answer in looked if count < fewest)
    assert looked[-1][1]
    again = levymc.sample(WALK, KEY, starts, 300, until=rule, progress=False)
    assert again.num_draws == next(count for count, answer in looked if answer)


def test_enough_ends_no_run_at_a_draw_that_is_not_finite():
    """It is not enough, and what there is, is kept: `levymc.diagnostics.check` reports it."""
    draws = np.random.default_rng(0).normal(size=(4, 500))
    draws[1, 3] = np.nan
    assert not levymc.enough(1, rhat=10)(levymc.Result(draws, np.ones((4, 500)), None))


def test_enough_stops_at_the_first_coordinate_that_fails(monkeypatch):
    from levymc.diagnostics import _enough

    seen = []
    for name in ("rhat_of", "ess_of"):
        real = getattr(_enough, name)
        monkeypatch.setattr(
            _enough, name, lambda *given, real=real: seen.append(given) or real(*given)
        )
    draws = np.random.default_rng(0).normal(size=(4, 500, 30))
    result = levymc.Result(draws, np.ones((4, 500)), None)
    assert levymc.enough(400)(result)
    assert len(seen) == 90
    seen.clear()
    draws[..., 2] += 10 * np.arange(4)[:, None]
    assert not levymc.enough(400)(result)
    assert len(seen) == 7


def test_enough_sees_the_tails():
    """One visit to the upper tail: of the bulk there are three times as many effective draws."""
    draws = np.random.default_rng(1).uniform(-1, 1, (4, 1000))
    draws[0, 500:620] += 3
    result = levymc.Result(draws, np.ones((4, 1000)), None)
    bulk, tail = (levymc.diagnostics.ess(result, kind=kind)["x"] for kind in ("bulk", "tail"))
    assert bulk > 3 * tail
    assert not levymc.enough(2 * tail, rhat=10)(result)
    assert levymc.enough(tail / 2, rhat=10)(result)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ess": 0}, "`ess` must be positive and finite, got 0"),
        ({"rhat": 1.0}, "`rhat` must be above 1, got 1.0"),
    ],
)
def test_enough_refuses(given, words):
    with pytest.raises(ValueError, match=words):
        levymc.enough(**given)
