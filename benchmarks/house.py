"""The house in numbers: files that one call walks through, lines, and what a second run costs."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bars import Bar, show

SOURCE = Path(__file__).parents[1] / "src"
SUFFIXES = {".py", ".cpp", ".h", ".css", ".j2"}


def lines_of(folder: Path, *without: str) -> int:
    """Lines of all source files below a folder."""
    files = [file for file in folder.rglob("*") if file.suffix in SUFFIXES]
    kept = [file for file in files if not set(file.relative_to(folder).parts) & set(without)]
    return sum(len(file.read_text("utf-8").splitlines()) for file in kept)


def size() -> list[Bar]:
    library, whole = SOURCE / "levymc", SOURCE
    return [
        Bar("lines of the library without its models", lines_of(library, "models"), "", 9000),
        Bar("lines of the whole source", lines_of(whole), "", 20_000),
        Bar("modules of levymc.run", len(list((library / "run").glob("*.py"))) - 1, ""),
    ]


def walk() -> list[Bar]:
    """Files of levymc with a line that runs in `sample(fla(...))`, in a process of its own."""
    script = """
import sys, jax, jax.numpy as jnp, levymc
files = set()
def see(frame, event, argument):
    if "/levymc/" in frame.f_code.co_filename:
        files.add(frame.f_code.co_filename)
def logdensity(x):
    return -x * x / 2
sys.setprofile(see)
levymc.sample(levymc.fla(logdensity, 0.1, 1.7), jax.random.key(0), jnp.zeros(4), 100)
sys.setprofile(None)
print(len(files))
"""
    return [Bar("files that sample(fla(...)) walks through", float(_run(script)), "", 15)]


def import_time(rounds: int = 5) -> list[Bar]:
    """What `import levymc` adds to `import jax`: the best of some rounds."""

    def seconds(script: str) -> float:
        begin = time.perf_counter()
        _run(script)
        return time.perf_counter() - begin

    # jax.numpy and scipy.special are what everything on JAX imports anyway.
    with_us, without = (
        min(seconds(script) for _ in range(rounds)) for script in ("import levymc", "import jax")
    )
    return [Bar("import levymc, beyond import jax", with_us - without, "s", 0.4)]


def second_runs() -> list[Bar]:
    """Seconds of a first run, and of others with other numbers, in one process."""
    script = """
import time, jax, jax.numpy as jnp, levymc
def logdensity(x):
    return -((x + 5) * (x + 1) * (x - 1.02) * (x - 5) / 10 + 0.5)
compiled = []
jax.monitoring.register_event_duration_secs_listener(
    lambda name, seconds, **_: compiled.append(name) if "backend_compile" in name else None
)
def run(step_size, alpha, num_steps, thin):
    begin = time.perf_counter()
    algorithm = levymc.fla(logdensity, step_size, alpha)
    levymc.sample(algorithm, jax.random.key(0), jnp.zeros(4), num_steps, thin=thin, progress=False)
    return time.perf_counter() - begin
first = run(0.1, 1.7, 1000, 2)
before = len(compiled)
later = max(run(0.2, 1.6, 1500, 3), run(0.05, 1.3, 777, 7))
print(first, later, len(compiled) - before)
"""
    first, later, compiled = map(float, _run(script).split())
    return [
        Bar("first run of fla, compiling", first, "s"),
        Bar("a run with another η, α, length and thinning", later, "s", 0.5),
        Bar("programs compiled for it", compiled, "", 0),
    ]


def stored_run() -> list[Bar]:
    """How often the program of a stored run is compiled, which is called `call` then."""
    script = """
import tempfile, jax, jax.numpy as jnp, levymc
compiled = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, _, **named: (
        compiled.append(named.get("fun_name", "")) if "backend_compile" in event else None
    )
)
with tempfile.TemporaryDirectory() as folder:
    walk = levymc.levy_walk(lambda x: -jnp.sum(x * x) / 2, 1.0)
    levymc.sample(
        walk, jax.random.key(0), jnp.zeros((4, 3)), 5000, store=folder + "/run", progress=False
    )
print(sum("call" in name or "advance" in name for name in compiled))
"""
    return [Bar("times that a stored run compiles its program", float(_run(script)), "", 1)]


def _run(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout


def house() -> Iterator[Bar]:
    for measure in (size, walk, import_time, second_runs, stored_run):
        yield from measure()


if __name__ == "__main__":
    show(house())
