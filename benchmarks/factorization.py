"""Speed and memory of matrix factorisation, as ratios to BlackJAX's and PyTorch's loops.

The data are synthetic, of the sizes of MovieLens 10M and 20M, with popular and unpopular items.
Peers are written as their users would: autodiff, a batch of a tenth of the ratings, noise for all
parameters.  Comparisons are on one core, to which all threads of the process are bound meanwhile.
Beside the time of a rating stands that of reading what a step must read from memory.

With `--against PATH`, the kernel against that of the checkout there, instead;
LEVYMC_NATIVE_ISA=avx2 measures this one without AVX-512.
"""

import argparse
import contextlib
import ctypes
import gc
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import against
import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from bars import Bar, missing, show

import levymc
from levymc_lab import data as lab_data

RANK, ETA = 10, 1e-7
# So many that the 15 ms which a call of `sample` takes by itself do not count.
STEPS = {"ours": 32, "peer": 1}


class Data(NamedTuple):
    """Ratings in the order of the users."""

    users: np.ndarray
    items: np.ndarray
    ratings: np.ndarray
    num_users: int
    num_items: int

    @property
    def batch_size(self) -> int:
        return len(self.ratings) // 10

    @property
    def compact_bytes(self) -> int:
        """Two bytes for an item, one for a value, four for where a user's ratings begin."""
        return 3 * len(self.ratings) + 4 * self.num_users


SIZES = {"10M": "ml-10m", "20M": "ml-20m"}


@lru_cache(maxsize=1)
def synthetic(size: str) -> Data:
    """Synthetic ratings, as skewed as MovieLens."""
    ratings = lab_data.synthetic(*lab_data.SIZES[SIZES[size]])
    users, items = ratings.users.astype(np.int32), ratings.items.astype(np.int32)
    return Data(users, items, ratings.values, ratings.num_users, ratings.num_items)


def starts(data: Data) -> dict[str, jax.Array]:
    keys = jax.random.split(jax.random.key(0))
    shapes = {"users": (data.num_users, RANK), "items": (data.num_items, RANK)}
    return {
        name: 0.1 * jax.random.normal(key, shape, jnp.float32)
        for key, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def ours(data: Data, alpha: float, **options) -> Callable[[], object]:
    fast = levymc.models.fast_factorization(
        *data,
        rank=RANK,
        batch_size=data.batch_size,
        step_size=ETA,
        alpha=alpha,
        center=3.0,
        **options,
    )
    begin = jax.tree.map(lambda leaf: leaf[None], starts(data))
    whole = levymc.whole(fast.data)
    steps = STEPS["ours"]

    def run():
        return levymc.sample(
            fast.algorithm, jax.random.key(0), begin, steps, thin=steps, minibatches=whole,
            progress=False,
        ).positions  # fmt: skip

    return run


def by_blackjax(data: Data) -> Callable[[], object]:
    """The inference loop of BlackJAX's documentation, around its stochastic-gradient step."""
    count, size = len(data.ratings), data.batch_size
    arrays = jax.tree.map(jnp.asarray, (data.users, data.items, data.ratings))

    def logdensity(position, batch):
        users, items, ratings = batch
        means = jnp.sum(position["users"][users] * position["items"][items], axis=1)
        prior = sum(jnp.sum(table**2) for table in position.values())
        return -(count / size) * jnp.sum((ratings - means) ** 2) / 2 - prior / 2

    sgld = blackjax.sgld(jax.grad(logdensity))

    @jax.jit
    def run(key, position, arrays):
        def one_step(position, step_key):
            key_batch, key_noise = jax.random.split(step_key)
            chosen = jax.random.randint(key_batch, (size,), 0, count)
            batch = jax.tree.map(lambda leaf: leaf[chosen], arrays)
            return sgld.step(key_noise, position, batch, ETA), None

        return jax.lax.scan(one_step, position, jax.random.split(key, STEPS["peer"]))[0]

    begin = starts(data)
    return lambda: run(jax.random.key(0), begin, arrays)


def by_torch(data: Data) -> Callable[[], object]:
    """SGLD by PyTorch's autograd."""
    import torch

    torch.set_num_threads(1)
    users, items, ratings = (torch.from_numpy(np.ascontiguousarray(a)) for a in data[:3])
    position = [torch.from_numpy(np.array(leaf)).requires_grad_() for leaf in starts(data).values()]
    count, size = len(data.ratings), data.batch_size

    def run():
        for _ in range(STEPS["peer"]):
            chosen = torch.randint(0, count, (size,))
            a, b = position[0][users[chosen].long()], position[1][items[chosen].long()]
            errors = ratings[chosen] - (a * b).sum(1)
            prior = sum((table**2).sum() for table in position)
            logdensity = -(count / size) * (errors**2).sum() / 2 - prior / 2
            gradients = torch.autograd.grad(logdensity, position)
            with torch.no_grad():
                for table, gradient in zip(position, gradients, strict=True):
                    table += ETA * gradient + (2 * ETA) ** 0.5 * torch.randn_like(table)

    return run


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Bind every thread of the process to one core."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    everywhere = os.sched_getaffinity(0)
    _bind({min(everywhere)})
    try:
        yield
    finally:
        _bind(everywhere)


def _bind(cores: set[int]) -> None:
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.name), cores)


def seconds_a_step(
    contenders: dict[str, Callable[[], object]], rounds: int
) -> dict[str, list[float]]:
    """Time every contender once per round, after one round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, run in contenders.items():
            begin = time.perf_counter()
            jax.block_until_ready(run())
            steps = STEPS["peer" if name in ("blackjax", "torch") else "ours"]
            if number:
                times[name].append((time.perf_counter() - begin) / steps)
    return times


def times_faster(times: dict[str, list[float]], name: str, peer: str) -> float:
    return statistics.median(b / a for a, b in zip(times[name], times[peer], strict=True))


def speed(size: str, rounds: int = 5) -> Iterator[Bar]:
    data = synthetic(size)
    contenders = {
        "sgld": ours(data, 2.0, backend="native"),
        "fla": ours(data, 1.6, backend="native"),
        "blackjax": by_blackjax(data),
    }
    if importlib.util.find_spec("torch") is not None:
        contenders["torch"] = by_torch(data)
    with one_core():
        times = seconds_a_step(contenders, rounds)
    yield Bar(f"BlackJAX / sgld, {size}", times_faster(times, "sgld", "blackjax"), "×", 25, True)
    subject = f"PyTorch / sgld, {size}"
    if "torch" in times:
        yield Bar(subject, times_faster(times, "sgld", "torch"), "×", 50, True)
    else:
        yield missing(subject, "PyTorch is not installed (pip install 'levymc[bench]')")
    yield Bar(f"fla(1.6) / sgld, {size}", 1 / times_faster(times, "fla", "sgld"), "×", 1.2)
    nanoseconds = {name: 1e9 * min(best) / data.batch_size for name, best in times.items()}
    for name, spent in nanoseconds.items():
        yield Bar(f"  best of {name}, {size}", spent, "ns/rating")
    reading = 1e9 * stream_seconds(data) / data.batch_size
    yield Bar(f"  reading alone, {size}", reading, "ns/rating")
    threads = {
        "one": ours(data, 2.0, backend="native"),
        "two": ours(data, 2.0, backend="native", num_threads=2),
    }
    subject = f"1 thread / 2 threads, {size}"
    if len(os.sched_getaffinity(0)) < 2:
        yield missing(subject, "there is one core")
        return
    parallel = seconds_a_step(threads, rounds)
    yield Bar(subject, times_faster(parallel, "two", "one"), "×", 1.7, True)


def stream_seconds(data: Data, rounds: int = 9) -> float:
    """The least that reading all ratings and users from memory takes, by NumPy on one core."""
    rows = 16 * 4 * (data.num_users + data.num_items)
    numbers = np.ones((data.compact_bytes + rows) // 8)
    best = np.inf
    with one_core():
        for _ in range(rounds):
            begin = time.perf_counter()
            numbers.max()
            best = min(best, time.perf_counter() - begin)
    return best


def memory(size: str) -> Bar:
    """What a run takes at its peak beyond a tiny run, in a process of its own."""
    command = [sys.executable, __file__, "--memory", size]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Bar(f"memory of a run / compact data, {size}", float(done.stdout), "×", 3)


def memory_of_a_run(size: str) -> float:
    few = Data(*(np.arange(100) % 5,) * 2, np.ones(100, np.float32), 5, 5)
    ours(few, 1.6)()
    gc.collect()
    before = _status("VmRSS")
    data = synthetic(size)
    run, compact = ours(data, 1.6), data.compact_bytes
    del data
    synthetic.cache_clear()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what making the data left to the allocator does not count
    Path("/proc/self/clear_refs").write_text("5")  # the peak is that of what follows
    run()
    return (_status("VmHWM") - before) / compact


def _status(name: str) -> int:
    """Bytes, from the kernel's account of the process."""
    (found,) = (s for s in Path("/proc/self/status").read_text().splitlines() if s.startswith(name))
    return int(found.split()[1]) * 1024


def matrix_factorization() -> Iterator[Bar]:
    """In JAX's default precision, as BlackJAX draws its noise in the widest there is."""
    with jax.enable_x64(False):
        for size in SIZES:
            yield from speed(size)
    synthetic.cache_clear()
    yield from map(memory, SIZES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", metavar="SIZE", choices=SIZES)
    parser.add_argument("--against", type=Path, metavar="PATH")
    parser.add_argument(against.SERVE, metavar="SIZE", choices=SIZES)
    arguments = parser.parse_args()
    if arguments.memory:
        print(memory_of_a_run(arguments.memory))
    elif arguments.serve:
        with jax.enable_x64(False):
            against.serve(ours(synthetic(arguments.serve), 2.0, backend="native"))
    elif arguments.against:
        for size in SIZES:
            bars = against.compare(__file__, size, f"sgld, {size}", arguments.against)
            show(bars)
    else:
        show(matrix_factorization())


if __name__ == "__main__":
    main()
