"""levymc.auto by several processes: the same bytes, however many and whatever ends them."""

import signal
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tests.core import auto_run
from tests.core.conftest import kill

import levymc
from levymc._workdir import lock
from levymc.adapt import _stages
from levymc.adapt._target import Target
from levymc.run import StoreError

SHARDS = 4


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A complete run in shards, made by one process."""
    store = tmp_path_factory.mktemp("auto") / "run"
    return store, auto_run.begin_shared(store, SHARDS)


def test_the_same_call_again_gives_the_same_and_another_is_refused(original):
    store, result = original
    assert result.positions.shape[0] == 8
    assert abs(sum(result.evaluations.values()) / auto_run.SHARED - 1) < 0.02
    assert auto_run.checksum(auto_run.begin_shared(store, SHARDS)) == auto_run.checksum(result)
    assert levymc.load(store / "draws-0").num_draws == result.num_draws
    assert len(list((store / "stages").glob("explore-1-*/explore-1-*.npz"))) == SHARDS
    with pytest.raises(
        StoreError, match="its shards is 4, not 2, its parts of the search is 4, not 2"
    ):
        auto_run.begin_shared(store, 2)
    with pytest.raises(StoreError, match="its shards is 4, not None"):
        auto_run.begin(store, budget=auto_run.SHARED)


def test_refusals(tmp_path):
    with pytest.raises(ValueError, match="`store` must be given with `shards`"):
        auto_run.begin(shards=2)
    with pytest.raises(ValueError, match="at most the number of systems, 8, got 9"):
        auto_run.begin(tmp_path / "run", shards=9)
    with pytest.raises(ValueError, match=r"'s3://bucket/run'\. Object stores have"):
        auto_run.begin("s3://bucket/run", shards=2)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").touch()
    with pytest.raises(StoreError, match="something else"):
        auto_run.begin(tmp_path / "thesis", shards=2)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis"]


def test_a_stage_is_made_by_one_and_waited_for_by_others(tmp_path, monkeypatch):
    """The claim of a process that is stopped is told of, and free once it is ended."""
    monkeypatch.setattr(_stages, "PAUSE", 0.01)
    monkeypatch.setattr(_stages, "SECONDS_TO_DOUBT", 0.1)
    stages = _stages.Stages(tmp_path, is_shared=True)
    with lock(tmp_path):
        threading.Timer(0.2, (tmp_path / "walk.npz").touch).start()
        with (
            pytest.warns(UserWarning, match=r"at the stage 'walk' .* is taken over"),
            stages.claimed("walk", (tmp_path / "walk.npz").exists),
        ):
            pass
    with stages.claimed("walk"), pytest.raises(RuntimeError, match="in use"), lock(tmp_path):
        pass


class Part(NamedTuple):
    number: int


def test_a_part_that_another_process_is_at_is_left_to_it(tmp_path, monkeypatch):
    """It is made here once that process has died; what all parts spent is added up."""
    monkeypatch.setattr(_stages, "PAUSE", 0.01)
    target, made = Target(levymc.targets.four_modes, np.zeros(2)), []
    target.evaluations = 1000
    (tmp_path / "walk-1").mkdir()
    with ExitStack() as other:
        other.enter_context(lock(tmp_path / "walk-1"))

        def make(number):
            made.append(number)
            target.evaluations += 10**number
            if number == 3:
                other.close()
            return Part(number)

        stages = _stages.Stages(tmp_path, is_shared=True)
        for _ in range(2):  # made, then read
            target.evaluations = 1000
            found = stages.of_parts("walk", 4, target, make, lambda kept: Part(**kept))
            assert found == [Part(0), Part(1), Part(2), Part(3)]
            assert target.evaluations == 1000 + 1111
    assert made == [0, 2, 3, 1]


# Real processes, each in a group of its own.


@pytest.fixture
def start(start_process, tmp_path):
    """A function that starts a process that makes a run."""
    given = (auto_run.__file__, tmp_path / "run")
    return lambda moment="never", *rest: start_process(*given, moment, SHARDS, *rest)


def assert_all_give(processes, result):
    for process in processes:
        told, _ = process.communicate(timeout=240)
        assert process.returncode == 0
        assert told.strip() == auto_run.checksum(result)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 4])
def test_any_number_of_processes_gives_the_same_bytes(original, start, tmp_path, count):
    """Begun at once, in a folder that is not there: all creators are one run."""
    assert_all_give([start() for _ in range(count)], original[1])
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.nightly
@pytest.mark.slow
def test_the_chains_of_nuts_are_shared(start, tmp_path):
    """How many steps they have is seen from the draws, as the budget is to be spent."""
    pytest.importorskip("blackjax")
    alone = auto_run.begin_shared(tmp_path / "alone", SHARDS, "curved")
    assert alone.algorithm == "nuts"
    spent, a_draw = sum(alone.evaluations.values()), alone.evaluations["sampling"] / alone.num_draws
    assert abs(spent - auto_run.BUDGET) < 0.02 * auto_run.BUDGET + a_draw
    assert_all_give([start("never", "curved") for _ in range(2)], alone)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("moment", ["exploring", "adapting", "sampling"])
def test_what_a_killed_process_was_at_is_finished_by_another(original, start, moment):
    dying = start(moment)
    others = [start()]
    dying.communicate(timeout=240)
    assert dying.returncode in (-signal.SIGKILL, 0)  # the other may have been there first
    assert_all_give(others, original[1])


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1)])
@pytest.mark.parametrize("moment", ["exploring", "adapting", "sampling"])
def test_all_are_killed_and_others_go_on(original, start, tmp_path, moment, before, after):
    for process in [start(moment) for _ in range(before)]:
        process.communicate(timeout=240)
        assert process.returncode == -signal.SIGKILL
    assert (tmp_path / "run" / "draws-0").exists() == (moment == "sampling")
    assert_all_give([start() for _ in range(after)], original[1])


@pytest.mark.nightly
@pytest.mark.slow
def test_a_stopped_process_keeps_its_stage_until_it_is_ended(original, start, tmp_path):
    stopped = start("stopping")
    wait_until(lambda: Path(f"/proc/{stopped.pid}/stat").read_text().split()[2] == "T")
    other = start()
    time.sleep(5.0)
    assert other.poll() is None
    assert not (tmp_path / "run" / "stages" / "ladder-0.npz").exists()
    kill(stopped)
    assert_all_give([other], original[1])


def wait_until(holds):
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
