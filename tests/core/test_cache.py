"""Compiled programs on disk: whose folder it is, what is found again in it, and what is shown."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.monitoring
import jax.numpy as jnp
import pytest
from jax.experimental.compilation_cache import compilation_cache

import levymc
from levymc import _cache
from levymc.run import _progress

ROOT = Path(__file__).parents[2]
OPTIONS = {
    "jax_compilation_cache_dir": "",
    "jax_persistent_cache_min_compile_time_secs": 1.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
}


@pytest.fixture(autouse=True)
def configuration(monkeypatch):
    """JAX as it is by itself, and afterwards as the tests have it."""
    monkeypatch.delenv(_cache.VARIABLE, raising=False)
    before = {name: getattr(jax.config, name) for name in OPTIONS}
    for name, value in OPTIONS.items():
        jax.config.update(name, value)
    yield lambda: {name: getattr(jax.config, name) for name in OPTIONS}
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def test_programs_go_into_a_folder_of_the_users(tmp_path, monkeypatch, configuration):
    """Also of a process that has compiled something before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    jax.jit(lambda x: x + 1)(1.0)
    place = levymc.enable_compilation_cache()
    assert place is not None
    assert place.parent == tmp_path / "levymc" / "compiled"
    assert place.stat().st_mode & 0o777 == 0o700
    assert configuration() == {
        "jax_compilation_cache_dir": str(place),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    jax.jit(lambda x: x + 2)(1.0)
    assert list(place.glob("*-cache"))
    assert levymc.enable_compilation_cache() == place


@pytest.mark.parametrize("word", ["off", "OFF", "0"])
def test_it_can_be_switched_off(tmp_path, monkeypatch, configuration, word):
    monkeypatch.setenv(_cache.VARIABLE, word)
    assert levymc.enable_compilation_cache(tmp_path / "cache") is None
    assert configuration() == OPTIONS
    assert list(tmp_path.iterdir()) == []


def test_a_folder_may_be_named(tmp_path, monkeypatch, configuration):
    place = levymc.enable_compilation_cache(tmp_path / "mine")
    assert place is not None
    assert place.parent == tmp_path / "mine"
    assert levymc.enable_compilation_cache() == place  # what JAX has is left as it is
    monkeypatch.setenv(_cache.VARIABLE, str(tmp_path / "named"))
    named = levymc.enable_compilation_cache()
    assert named is not None
    assert named.parent == tmp_path / "named"


@pytest.mark.parametrize("is_inner", [False, True])
def test_a_folder_that_others_can_write_to_is_refused(tmp_path, configuration, is_inner):
    inner = tmp_path / "cache" / _cache._machine()
    inner.mkdir(parents=True)
    (inner if is_inner else inner.parent).chmod(0o777)
    with pytest.raises(PermissionError, match=r"others can write.*XDG_CACHE_HOME"):
        levymc.enable_compilation_cache(tmp_path / "cache")
    assert configuration() == OPTIONS


def test_programs_for_other_threads_are_kept_apart(monkeypatch):
    """XLA rounds as it cuts a program for its threads, of which JAX's name for it says nothing."""
    names = set()
    for threads in ("1", "2"):
        monkeypatch.setenv("NPROC", threads)
        names.add(_cache._machine())
    monkeypatch.setenv("NPROC", "1")
    assert len(names | {_cache._machine()}) == 2


def test_the_oldest_programs_make_room(tmp_path, monkeypatch):
    monkeypatch.setattr(_cache, "MOST_BYTES", 100)
    for age, size in enumerate([30, 0, 30, 30]):
        file = tmp_path / f"{age}-cache"
        file.write_bytes(bytes(size))
        os.utime(file, (age, age))
    _cache._prune(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0-cache", "2-cache", "3-cache"]
    (tmp_path / "4-cache").write_bytes(bytes(30))
    _cache._prune(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["4-cache"]


def in_new_process(case: str, tmp_path: Path, name: str) -> dict:
    folder = tmp_path / name
    folder.mkdir()
    others = {key: value for key, value in os.environ.items() if "CACHE" not in key}
    command = [sys.executable, "-m", "tests.core.cached_run", case, str(folder)]
    environment = {**others, _cache.VARIABLE: str(tmp_path / "cache")}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "case",
    [
        "stored",
        pytest.param("mafla", marks=pytest.mark.nightly),
        pytest.param("auto", marks=pytest.mark.nightly),
        pytest.param("kernel", marks=pytest.mark.nightly),
    ],
)
def test_a_second_process_compiles_nothing(tmp_path, case):
    """Its programs are the same to the last constant, and so are its draws."""
    cold = in_new_process(case, tmp_path, "cold")
    warm = in_new_process(case, tmp_path, "warm")
    assert cold["found"] < cold["asked"]
    assert warm["found"] == warm["asked"]
    assert warm["draws"] == cold["draws"]


@pytest.fixture
def heard():
    """The names of what is compiled."""
    names = []

    def listen(event, _seconds, **details):
        if event == _progress.AFTER:
            names.append(details.get("fun_name", ""))

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    jax.monitoring.unregister_event_duration_listener(listen)


def test_a_stored_run_compiles_its_program_once(tmp_path, heard):
    """In calls from the states that are loaded, and in those from states that it returned."""
    starts = jnp.zeros((4, 3))
    walk = levymc.levy_walk(lambda x: -jnp.sum(x * x) / 2, 1.0)
    key = jax.random.key(0)
    made = levymc.sample(walk, key, starts, 40, store=tmp_path / "run", progress=False)
    assert made.num_draws == 40
    assert sum("call" in name for name in heard) == 1
    assert not any("advance" in name for name in heard)
    heard.clear()
    levymc.resume(tmp_path / "run", num_steps=80, progress=False)
    assert not any("call" in name for name in heard)


RESUME = """
import sys, levymc
made = levymc.resume(sys.argv[1], num_steps=20, progress=False)
print(made.num_draws, "scipy.linalg" in sys.modules)
"""


def with_factor(x):
    """log N(0, I + x₀² / 10), by LAPACK."""
    factor = jnp.linalg.cholesky(jnp.eye(3, dtype=x.dtype) * (1 + x[0] ** 2 / 10))
    return -jnp.sum(x * x) / 2 - jnp.sum(jnp.log(jnp.diag(factor)))


DENSITIES = {"without": (lambda x: -jnp.sum(x * x) / 2, False), "with": (with_factor, True)}


@pytest.mark.parametrize("name", DENSITIES)
def test_linear_algebra_is_loaded_by_stored_programs_that_use_it(name, tmp_path):
    """By them it has to be; by others it would take a fifth of the time to the first draw."""
    density, is_used = DENSITIES[name]
    walk, starts = levymc.levy_walk(density, 1.0), jnp.zeros((4, 3), jnp.float32)
    store = tmp_path / "run"
    levymc.sample(walk, jax.random.key(0), starts, 10, store=store, progress=False)
    command = [sys.executable, "-c", RESUME, str(store)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["20", str(is_used)]


def test_the_bar_tells_when_a_program_is_compiled():
    pytest.importorskip("rich")
    from rich.progress import Progress

    note = _progress._note()
    bar = Progress(note)
    bar.add_task("", note="2 refused")
    shown = []
    for event in ("", _progress.BEFORE, "/jax/other", _progress.AFTER):
        _progress._compiler().hear(event, 0.1, fun_name="advance")
        shown.append(str(note(bar.tasks[0])))
    assert shown == ["2 refused", "compiling …", "compiling …", "2 refused"]


def test_jax_tells_when_it_compiles():
    """Before and after each program, to whoever listens: what the bar relies on."""
    states = []

    def listen(event, _seconds, **_):
        if event in (_progress.BEFORE, _progress.AFTER):
            states.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        jax.jit(lambda x: 3 * x + 5)(2.0)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert states[-2:] == [_progress.BEFORE, _progress.AFTER]
