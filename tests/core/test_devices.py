"""Chains over devices: those of one process, and those of several."""

import json
import os
import signal
import socket
import time

import jax
import numpy as np
import pytest
from tests.core import distributed_run, four_devices, sharded_run, stored_run

import levymc
from levymc.distributed import ADDRESS, COUNT, HEARTBEAT, NUMBER

FLAG = "--xla_force_host_platform_device_count="


# Several devices.


@pytest.fixture
def check(start_process, tmp_path):
    """A function that makes checks of `four_devices`."""

    def on_four_devices(*checks):
        names = [one.__name__ for one in checks]
        flags = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}4"
        process = start_process(four_devices.__file__, tmp_path, *names, XLA_FLAGS=flags)
        told, _ = process.communicate(timeout=240)
        assert told.split() == names
        assert process.returncode == 0

    return on_four_devices


def test_uneven_chains_over_devices_are_those_of_one(check):
    check(
        four_devices.uneven_chains_are_those_of_one_device,
        four_devices.a_stored_loop_goes_on_over_devices,
    )


@pytest.mark.nightly
@pytest.mark.slow
def test_what_runs_over_devices(check):
    check(
        four_devices.even_chains_are_those_of_one_device,
        four_devices.a_sweep_has_the_numbers_of_each_chain,
        four_devices.visits_are_of_the_chains_alone,
    )


@pytest.mark.nightly
@pytest.mark.slow
def test_devices_wait_for_no_other(check):
    pytest.importorskip("blackjax")
    check(four_devices.devices_exchange_nothing)


@pytest.mark.nightly
@pytest.mark.slow
def test_devices_make_the_shards_of_a_store(check):
    check(
        four_devices.each_device_makes_shards_of_a_store,
        four_devices.a_device_that_fails_halts_the_others,
        four_devices.ctrl_c_halts_all_devices,
    )


def test_a_mesh_is_refused_where_it_cannot_serve(tmp_path, monkeypatch):
    mesh = jax.make_mesh((1,), ("chains",))
    stored_run.begin(tmp_path / "run", 20)
    with pytest.raises(ValueError, match="`mesh` must be None for a run without shards"):
        levymc.resume(tmp_path / "run", mesh=mesh)
    given = (stored_run.WALK, jax.random.key(0), sharded_run.STARTS, 9)
    with monkeypatch.context() as patched:
        patched.setattr(jax.sharding.Mesh, "is_multi_process", True)
        with pytest.raises(ValueError, match=r"of one process with `store` here.*levymc.sample"):
            levymc.iterate(*given, store=tmp_path / "new", mesh=mesh)
    for use in (levymc.resume, levymc.run.work):
        with pytest.raises(TypeError, match=r"`mesh` must be a jax\.sharding\.Mesh"):
            use(tmp_path / "run", mesh="two")
    with pytest.raises(ValueError, match="`until` must be None"):
        sharded_run.begin(tmp_path / "new", shards=None, mesh=mesh, until=lambda result: True)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


# Several processes.


def test_the_environment_of_processes_is_checked(monkeypatch):
    """Before JAX is asked for anything."""
    monkeypatch.setenv(ADDRESS, "127.0.0.1:1")
    with pytest.raises(ValueError, match="`JAX_NUM_PROCESSES` must be set with JAX_COORDINATOR"):
        levymc.distributed.initialize()
    monkeypatch.setenv(COUNT, "two")
    with pytest.raises(ValueError, match="`JAX_NUM_PROCESSES` must be a whole number, got 'two'"):
        levymc.distributed.initialize()
    with pytest.raises(ValueError, match="`heartbeat_seconds` must be at least 1, got 0"):
        levymc.distributed.initialize(heartbeat_seconds=0)


@pytest.fixture
def start(start_process, tmp_path):
    """A function that starts processes that know of one another."""

    def together(count, pause=0.0):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        shared = {ADDRESS: address, "JAX_COORDINATOR_BIND_ADDRESS": address, HEARTBEAT: "10"}
        given = (distributed_run.__file__, tmp_path / "run", pause)
        return [
            start_process(*given, **shared, **{COUNT: str(count), NUMBER: str(number)})
            for number in range(count)
        ]

    return together


def told_by(processes):
    found = []
    for process in processes:
        told, _ = process.communicate(timeout=240)
        assert process.returncode == 0
        found.append(json.loads(told))
    return found


def expected(tmp_path):
    return sharded_run.checksum(sharded_run.begin(tmp_path / "alone"))


@pytest.mark.nightly
@pytest.mark.slow
def test_processes_have_the_chains_of_their_devices(start, tmp_path):
    first, second = told_by(start(2))
    assert (first["count"], first["chains"], second["chains"]) == (2, [0, 3], [3, 5])
    assert first["own"] != second["own"]
    assert first["stored"] == second["stored"] == expected(tmp_path)
    for found in (first, second):
        rule, single, spread, auto = found["refusals"]
        assert "`until` must be None for a run in shards, or over several processes" in rule
        assert "`mesh` must leave chains for every process, got 2 devices for 1" in single
        assert "`initial_positions` must be there in every process" in spread
        assert "`store` must be given with a mesh over several processes" in auto


@pytest.mark.nightly
@pytest.mark.slow
def test_others_go_on_when_a_process_is_killed(start, tmp_path):
    """JAX ends those that knew of it; any number goes on."""
    one, other = start(2, 0.3)
    shards = tmp_path / "run" / "levymc" / "shards.json"
    deadline = time.monotonic() + 240
    while not shards.exists():
        assert time.monotonic() < deadline
        assert one.poll() is other.poll() is None
        time.sleep(0.05)
    time.sleep(1.0)
    os.killpg(other.pid, signal.SIGKILL)
    one.communicate(timeout=60)
    (found,) = told_by(start(1))
    assert found["stored"] == expected(tmp_path)
    whole = levymc.load(tmp_path / "run")
    assert np.asarray(whole.positions["x"]).shape[0] == sharded_run.CHAINS
