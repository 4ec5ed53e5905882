"""`levymc launch`: processes that begin and end together, and who is told to be the cause."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from levymc_lab import launch
from levymc_lab.cli import app

ROOT = Path(__file__).parents[2]
SCRIPT = """
import os, signal, sys, time
number, what = int(os.environ["JAX_PROCESS_ID"]), sys.argv[1]
print("process", number, "of", os.environ["JAX_NUM_PROCESSES"], what)
if number == 1:
    if what == "raise":
        raise ValueError("this is the cause")
    if what in ("SIGKILL", "SIGSTOP"):
        os.kill(os.getpid(), getattr(signal, what))
if what == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    number and sys.exit(3)
if what == "parent":
    child = os.fork()
    if child == 0:
        time.sleep(60)
    print("child", child)
    sys.exit(0)
if what != "fine":
    time.sleep(60)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def run(script, monkeypatch):
    """A function that launches the script, and how many seconds that took."""
    monkeypatch.setattr(launch._processes, "PAUSE", 0.1)

    def timed(what, count=3):
        begun = time.monotonic()
        command = [sys.executable, str(script), what]
        return launch.launch(command, count, heartbeat_seconds=1), time.monotonic() - begun

    return timed


def test_output_is_passed_on_with_the_number_of_its_process(run, capfd):
    ended, _ = run("fine", 2)
    assert ended == (None, "", 0)
    lines = capfd.readouterr().out.splitlines()
    assert sorted(lines) == ["[0] process 0 of 2 fine", "[1] process 1 of 2 fine"]


@pytest.mark.parametrize(
    ("what", "reason", "code"),
    [
        ("raise", "ended with exit code 1", 1),
        ("SIGKILL", "was ended by SIGKILL, perhaps for want of memory", 137),
        ("SIGSTOP", "is stopped (by SIGSTOP)", 147),
    ],
)
def test_the_process_that_died_is_named_and_the_others_ended(run, capfd, what, reason, code):
    ended, seconds = run(what)
    assert ended == (1, reason, code)
    assert seconds < 1 + 5
    assert ("[1] ValueError: this is the cause" in capfd.readouterr().err) == (what == "raise")


@pytest.mark.nightly
def test_one_that_does_not_listen_is_ended_all_the_same(run):
    ended, seconds = run("deaf", 2)
    assert (ended.failed, ended.code) == (1, 3)
    assert 3 < seconds < 1 + 5


def test_what_processes_started_is_ended_with_them(run, capfd):
    assert run("parent", 1)[0].failed is None
    (child,) = [line.split()[-1] for line in capfd.readouterr().out.splitlines() if "child" in line]
    deadline = time.monotonic() + 5
    while is_running(int(child)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_the_command_that_resumes_is_printed(script):
    result = CliRunner().invoke(app, ["launch", "-n", "2", str(script), "raise", "--steps", "3"])
    assert result.exit_code == 1
    assert "levymc: process 1 ended with exit code 1; ending the 1 others." in result.stderr
    assert f"go on with:\n  levymc launch -n 2 --heartbeat 10 {script} raise" in result.stderr
    assert result.stderr.strip().endswith("raise --steps 3")
    assert CliRunner().invoke(app, ["launch", "-n", "2", str(script), "fine"]).exit_code == 0
    assert CliRunner().invoke(app, ["launch", "nothing.py"]).exit_code == 2


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ending_the_launcher_ends_all(script, number):
    command = [sys.executable, "-m", "levymc", "launch", "-n", "2", str(script), "wait"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as launcher:
        for _ in range(2):
            launcher.stdout.readline()
        os.kill(launcher.pid, number)
        _, told = launcher.communicate(timeout=30)
    assert launcher.returncode == 128 + number
    assert ("Go on with:" in told) == (number == signal.SIGINT)


# With JAX.

TOGETHER = """
import os, signal, sys, time
import levymc
levymc.distributed.initialize()
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec
mesh = jax.make_mesh((jax.device_count(),), ("all",))
rows = NamedSharding(mesh, PartitionSpec("all"))
ones = jax.make_array_from_callback((jax.device_count(),), rows, lambda _: jnp.ones(1))
total = jax.jit(jnp.sum, out_shardings=NamedSharding(mesh, PartitionSpec()))
print("sum", float(total(ones)), flush=True)
for _ in range(600):
    if jax.process_index() == 1 and sys.argv[1:]:
        os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    if not sys.argv[1:]:
        break
    if sys.argv[2] == "together":
        total(ones).block_until_ready()
    time.sleep(0.1)
"""


@pytest.fixture
def together(tmp_path, capfd):
    path = tmp_path / "together.py"
    path.write_text(TOGETHER)

    def run(*arguments):
        times = []
        ended = launch.launch(
            [sys.executable, str(path), *arguments],
            2,
            heartbeat_seconds=4,
            tell=lambda _: times.append(time.monotonic()),
        )
        told = capfd.readouterr()
        return ended, time.monotonic() - min(times, default=time.monotonic()), told.out

    return run


@pytest.mark.nightly
@pytest.mark.slow
def test_processes_find_one_another(together):
    ended, _, told = together()
    assert ended.failed is None
    assert sorted(line for line in told.splitlines() if "sum" in line) == [
        "[0] sum 2.0",
        "[1] sum 2.0",
    ]


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("how", ["together", "idle"])
@pytest.mark.parametrize(
    ("number", "reason"), [("SIGKILL", "was ended by SIGKILL"), ("SIGSTOP", "is stopped")]
)
def test_the_cause_is_named_though_jax_ends_others(together, number, reason, how):
    """Whether they were in the middle of a sum or not."""
    ended, seconds, told = together(number, how)
    assert told.count("sum 2.0") == 2
    assert ended.failed == 1
    assert reason in ended.reason
    assert seconds < 4 + 5
