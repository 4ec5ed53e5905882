"""What `scale.py` starts in processes of their own.

    python benchmarks/scale_jobs.py JOB FOLDER ADDRESS COUNT NUMBER

COUNT processes do the job together, of which this is number NUMBER; it prints JSON.
"""

import hashlib
import inspect
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

import levymc

REPEATS = 5
SHARDS = 4  # one for each of the processes of the largest test
BATCHES = {1_000: 1000, 20_000: 100, 200_000: 12}  # steps that are timed, by the minibatch's size
POINTS, DIMENSION = 400_000, 100
SIZES = (1, 1_000, 10_000, 100_000, 262_144, 1_048_576, 4_194_304)  # floats of an all-reduce
TURNS = 10


def log_prior(x):
    return -jnp.sum(x * x) / 2


def log_likelihood(x, point):
    features, label = point
    logit = jnp.dot(features, x)
    return label * logit - jnp.logaddexp(0.0, logit)


def logistic(num_points: int, dimension: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    features = generator.standard_normal((num_points, dimension), np.float32) / dimension**0.5
    logits = features @ generator.standard_normal(dimension).astype(np.float32)
    return features, (generator.random(num_points) < 1 / (1 + np.exp(-logits))).astype(np.float32)


def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((jax.device_count(),), ("devices",))


class Meeting:
    """Where processes wait for each other: by JAX, or, where they only share a folder, by files."""

    def __init__(self, folder: Path, count: int, number: int, *, is_distributed: bool) -> None:
        self.folder, self.count, self.number = folder, count, number
        self.is_distributed, self.turn = is_distributed, 0

    def __call__(self) -> None:
        self.turn += 1
        if self.count == 1:
            return
        if self.is_distributed:
            multihost_utils.sync_global_devices(f"meeting {self.turn}")
            return
        (self.folder / f"here-{self.count}-{self.turn}-{self.number}").touch()
        while len(list(self.folder.glob(f"here-{self.count}-{self.turn}-*"))) < self.count:
            time.sleep(0.005)


def timed(
    meet: Meeting, make: Callable[[int], object], repeats: int = REPEATS
) -> dict[str, list[float]]:
    """Seconds and processor seconds; all processes begin together, and the first turn compiles."""
    jax.block_until_ready(make(0))
    times: dict[str, list[float]] = {"wall": [], "cpu": []}
    for turn in range(1, repeats + 1):
        meet()
        wall, cpu = time.perf_counter(), time.process_time()
        jax.block_until_ready(make(turn))
        times["wall"].append(time.perf_counter() - wall)
        times["cpu"].append(time.process_time() - cpu)
    return times


def chains(folder: Path, meet: Meeting) -> dict[str, Any]:
    """1024 chains of a logistic regression, in shards."""
    estimator = levymc.grad_estimator(log_prior, log_likelihood, 1000)
    data = jax.tree.map(jnp.asarray, logistic(1000, 20))
    algorithm = levymc.ula(lambda x: estimator.logdensity(x, data), 1e-3)
    starts = jnp.zeros((1024, 20), jnp.float32)

    def make(turn: int) -> object:
        store = folder / f"chains-{meet.count}-{turn}"
        options = {"thin": 100, "store": store, "shards": SHARDS, "progress": False}
        return levymc.sample(algorithm, jax.random.key(turn), starts, 400, **options).positions

    return timed(meet, make, 3)


def auto(folder: Path, meet: Meeting) -> dict[str, Any]:
    """`levymc.auto` on four modes, in shards where it takes them."""
    if "shards" not in inspect.signature(levymc.auto).parameters:
        return {}

    def make(turn: int) -> object:
        store = folder / f"auto-{meet.count}-{turn}"
        options = {"budget": 400_000, "store": store, "shards": SHARDS, "progress": False}
        starts = jnp.full((4, 2), 4.0)
        return levymc.auto(
            levymc.targets.four_modes, jax.random.key(turn), starts, **options
        ).positions

    return timed(meet, make, 3)


def gradients(folder: Path, meet: Meeting) -> dict[str, Any]:
    """A step of SGLD by the size of the minibatch, whose data are over all processes."""
    data = logistic(POINTS, DIMENSION)
    estimator = levymc.grad_estimator(log_prior, log_likelihood, POINTS)
    algorithm = levymc.sgld(estimator, 1e-6)
    starts = jnp.zeros((1, DIMENSION), jnp.float32)
    found = {}
    for size, steps in BATCHES.items():
        batches = levymc.batches(data, size, mesh=mesh() if jax.process_count() > 1 else None)

        def make(turn: int, batches: Any = batches, steps: int = steps) -> object:
            options = {"minibatches": batches, "thin": [steps], "progress": False}
            return levymc.sample(
                algorithm, jax.random.key(turn), starts, steps, **options
            ).positions

        times = timed(meet, make)
        found[size] = {name: [one / steps for one in values] for name, values in times.items()}
    return found


def factorization(folder: Path, meet: Meeting) -> dict[str, Any]:
    """A step on ratings like those of MovieLens 20M, a tenth of them a batch."""
    with np.load(folder / "ratings.npz") as file:
        users, items, values = (file[name] for name in ("users", "items", "values"))
        num_users, num_items = file["counts"].tolist()
    fast = levymc.models.fast_factorization(
        *(users, items, values, num_users, num_items),
        batch_size=len(values) // 10,
        step_size=1e-7,
        center=3.5,
    )
    if jax.process_count() > 1:
        fast = levymc.models.spread_users(fast, mesh())
    some = [jnp.asarray(array[:: len(values) // 10_000]) for array in (users, items, values)]

    def error(position: Any) -> Any:
        predicted = jnp.sum(position["users"][some[0]] * position["items"][some[1]], axis=-1)
        return jnp.sqrt(jnp.mean((predicted + 3.5 - some[2]) ** 2))

    starts = {
        name: 0.1 * jax.random.normal(jax.random.key(n), (1, count, 10), jnp.float32)
        for n, (name, count) in enumerate((("users", num_users), ("items", num_items)))
    }
    steps, errors = 16, []

    def make(turn: int) -> object:
        options = {"minibatches": levymc.whole(fast.data), "thin": [steps], "keep": error}
        run = levymc.sample(
            fast.algorithm, jax.random.key(turn), starts, steps, progress=False, **options
        )
        errors.append(float(run.positions.ravel()[-1]))
        return run.positions

    times = timed(meet, make)
    each = {name: [one / steps for one in values] for name, values in times.items()}
    return {**each, "error": errors[0]}


def collectives(folder: Path, meet: Meeting) -> dict[str, Any]:
    """Seconds of an all-reduce by its bytes."""
    devices, found = mesh(), {}
    spec = jax.sharding.PartitionSpec("devices")
    for size in SIZES:

        @jax.jit
        @jax.shard_map(mesh=devices, in_specs=spec, out_specs=spec, check_vma=False)
        def sums(own):
            return jax.lax.fori_loop(0, TURNS, lambda _, x: jax.lax.pmean(x, "devices"), own)

        sharding = jax.sharding.NamedSharding(devices, spec)
        own = np.ones((1, size), np.float32)
        array = jax.make_array_from_process_local_data(sharding, own)
        times = timed(meet, lambda turn, sums=sums, array=array: sums(array))
        found[4 * size] = min(times["wall"]) / TURNS
    return found


def same_chains(folder: Path, meet: Meeting) -> dict[str, Any]:
    """A checksum of draws in shards."""
    walk = levymc.levy_walk(lambda x: -jnp.sum(x * x) / 2, 1.0)
    starts = jnp.zeros((8, 2), jnp.float32)
    options = {"store": folder / f"same-{meet.count}", "shards": SHARDS, "progress": False}
    draws = levymc.sample(walk, jax.random.key(0), starts, 200, **options).positions
    return {"checksum": hashlib.sha256(np.ascontiguousarray(draws)).hexdigest()}


def same_gradients(folder: Path, meet: Meeting) -> dict[str, Any]:
    """The ends of chains whose data are over four devices."""
    estimator = levymc.grad_estimator(log_prior, log_likelihood, 1003)
    ends = levymc.sample(
        *(levymc.sgld(estimator, 1e-3), jax.random.key(1), jnp.zeros((2, 5), jnp.float32), 50),
        minibatches=levymc.batches(logistic(1003, 5), 64, mesh=mesh()),
        thin=[50],
        progress=False,
    ).positions
    return {"ends": ends.ravel().tolist()}


SHARED = (chains, auto, same_chains)  # by a folder; the others by jax.distributed
JOBS = (*SHARED, gradients, factorization, collectives, same_gradients)


def main() -> None:
    name, place, address, count, number = sys.argv[1:]
    (job,) = (job for job in JOBS if job.__name__ == name)
    folder, is_distributed = Path(place), job not in SHARED
    meet = Meeting(folder, int(count), int(number), is_distributed=is_distributed)
    if is_distributed and meet.count > 1:
        jax.distributed.initialize(address, meet.count, meet.number)
        meet()  # Gloo waits 30 seconds for a process that comes late, but only then
    warnings.simplefilter("ignore", UserWarning)  # of communication: that is what is measured
    print(json.dumps(job(folder, meet)))


if __name__ == "__main__":
    main()
