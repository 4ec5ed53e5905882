"""What several processes give over one, what they cost, and how costs grow.

    python benchmarks/scale.py                      # all, some eight minutes on two quiet cores
    python benchmarks/scale.py chains collectives   # some of it
    python benchmarks/scale.py --write              # and put the tables into docs/scale.md

Sections are written as they end into build/scale.json, beside those of earlier calls; the tables
are of all that is there.  One that fails is told, and the others are measured all the same.  A
process computes by one thread.  Work is the same for one process and for two (strong scaling), and
an efficiency is T₁ / (2 T₂): of wall time the least of the repeats, of processor time the least of
the repeats' sums over the processes.
"""

import argparse
import json
import math
import os
import platform
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
DOCUMENT = HERE.parent / "docs" / "scale.md"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
PATIENCE = 300  # seconds
BUSY = 0.15  # of the cores, by others, from which on a section says so
DEVICES = (1, 2, 4, 16, 64, 256, 1024)
NETWORK = (30e-6, 3e9)  # seconds of latency and bytes a second: 25 Gbit/s Ethernet


def run(job: str, count: int, folder: Path, devices: int = 1) -> list[dict[str, Any]]:
    """What each of `count` processes says of a job."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    environment = os.environ | {
        "XLA_FLAGS": flags,
        "JAX_PLATFORMS": "cpu",
        # One thread that computes.  Bound to a core, it would wait for Gloo's on the same, and
        # an all-reduce would take 7 ms in the place of 0.2.
        "NPROC": "1",
        "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    with socket.socket() as held:
        held.bind(("localhost", 0))
        address = f"localhost:{held.getsockname()[1]}"
    common = [sys.executable, str(HERE / "scale_jobs.py"), job, str(folder), address, str(count)]
    started = [
        subprocess.Popen(
            [*common, str(number)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for number in range(count)
    ]
    try:
        said = [process.communicate(timeout=PATIENCE) for process in started]
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    for process, (_, error) in zip(started, said, strict=True):
        if process.returncode:
            raise RuntimeError(f"{job} failed in {count} processes: {error[-2000:]}")
    return [json.loads(output.splitlines()[-1]) for output, _ in said]


def together(said: list[dict[str, Any]]) -> dict[str, float]:
    """Of processes that work together: the least wall time, and the least sum of processor time."""
    walls = [max(each) for each in zip(*(one["wall"] for one in said), strict=True)]
    sums = [sum(each) for each in zip(*(one["cpu"] for one in said), strict=True)]
    return {"wall": min(walls), "cpu": min(sums), "spread": max(walls) / min(walls)}


def compared(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> dict[str, Any]:
    """Both, and the efficiencies."""
    alone, both = together(one), together(two)
    return {
        "one": alone,
        "two": both,
        "wall efficiency": alone["wall"] / (2 * both["wall"]),
        "cpu efficiency": alone["cpu"] / both["cpu"],
    }


def chains(folder: Path) -> dict[str, Any]:
    return {"1024 chains": compared(run("chains", 1, folder), run("chains", 2, folder))}


def auto(folder: Path) -> dict[str, Any]:
    one = run("auto", 1, folder)
    if not one[0]:
        return {}
    return {"`auto`, four modes": compared(one, run("auto", 2, folder))}


def gradients(folder: Path) -> dict[str, Any]:
    one, two = run("gradients", 1, folder), run("gradients", 2, folder)
    return {
        f"gradients, minibatch {size}": compared([x[size] for x in one], [x[size] for x in two])
        for size in one[0]
    }


def factorization(folder: Path) -> dict[str, Any]:
    import levymc_lab.data

    made = levymc_lab.data.synthetic(*levymc_lab.data.SIZES["ml-20m"])
    arrays = {"users": made.users, "items": made.items, "values": made.values}
    np.savez(folder / "ratings.npz", counts=[made.num_users, made.num_items], **arrays)
    one, two = run("factorization", 1, folder), run("factorization", 2, folder)
    errors = {"error of one": one[0]["error"], "error of two": two[0]["error"]}
    return {"factorisation, 20M ratings": compared(one, two) | errors}


def collectives(folder: Path) -> dict[str, Any]:
    """Seconds by bytes, and the latency and bandwidth that fit them best."""
    said = run("collectives", 2, folder)
    seconds = {int(size): max(one[size] for one in said) for size in said[0]}
    sizes, times = np.array(list(seconds), float), np.array(list(seconds.values()))
    # Relative errors count, as times are over four decades.
    matrix = np.stack([np.ones_like(sizes), sizes], axis=1) / times[:, None]
    latency, slope = np.linalg.lstsq(matrix, np.ones_like(times), rcond=None)[0]
    return {"seconds": seconds, "latency": float(latency), "bandwidth": float(1 / slope)}


def correctness(folder: Path) -> dict[str, Any]:
    """Whether what must not depend on the number of processes does not."""
    counts = (1, 2, 4)
    sums = {one["checksum"] for count in counts for one in run("same_chains", count, folder)}
    said = [[one["ends"] for one in run("same_gradients", n, folder, 4 // n)] for n in counts]
    differences = [np.max(np.abs(np.subtract(each[0], said[0][0]))) for each in said]
    return {
        "same bytes of chains": len(sums) == 1,
        "same numbers in all processes": all(one == each[0] for each in said for one in each),
        "largest difference of gradients' chains": float(max(differences)),
    }


def growth(folder: Path) -> dict[str, Any]:
    from scale_growth import growth as measure

    return measure()


SECTIONS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "correctness": correctness,
    "chains": chains,
    "auto": auto,
    "gradients": gradients,
    "factorization": factorization,
    "collectives": collectives,
    "growth": growth,
}


def speed_up(
    seconds: float, bytes_: float, devices: int, latency: float, bandwidth: float
) -> float:
    """Of a step that takes one device so long, and adds up so many bytes in a ring or tree.

    An all-reduce moves 2 (D-1)/D of the bytes through every link, and waits 2 log₂ D times.
    """
    wait = 2 * math.log2(devices) * latency + 2 * (devices - 1) / devices * bytes_ / bandwidth
    return seconds / (seconds / devices + wait)


# The tables.


def efficiency_table(found: dict[str, Any]) -> list[str]:
    """One process and two, on the same work."""
    lines = [
        "| Work | 1 process, s | 2, s | efficiency, wall | processor |",
        "|---|---|---|---|---|",
    ]
    for section in ("chains", "auto", "gradients", "factorization"):
        for name, row in found.get(section, {}).get("result", {}).items():
            one, two = row["one"]["wall"], row["two"]["wall"]
            shares = f"{row['wall efficiency']:.2f} | {row['cpu efficiency']:.2f}"
            lines.append(f"| {name}{mark(found[section])} | {one:.3g} | {two:.3g} | {shares} |")
    return [*lines, *error_lines(found)]


def error_lines(found: dict[str, Any]) -> list[str]:
    """What the factorisation predicts by one process and by two."""
    lines = []
    for name, row in found.get("factorization", {}).get("result", {}).items():
        one, two = row["error of one"], row["error of two"]
        lines += [
            "",
            f"Error of the predictions, {name}: {one:.4f} by one process, {two:.4f} by two.",
        ]
    return lines


def mark(section: dict[str, Any]) -> str:
    return " (busy)" if section["others"] > BUSY else ""


def correctness_lines(found: dict[str, Any]) -> list[str]:
    result = found.get("correctness", {}).get("result", {})
    return [f"- {name}: {value}" for name, value in result.items()]


def collective_table(found: dict[str, Any]) -> list[str]:
    if "collectives" not in found:
        return []
    result = found["collectives"]["result"]
    rows = [
        f"| {int(size):,} | {1e3 * seconds:.3g} |" for size, seconds in result["seconds"].items()
    ]
    fitted = (
        f"Fitted{mark(found['collectives'])}: {1e6 * result['latency']:.0f} µs and "
        f"{result['bandwidth'] / 1e9:.2g} GB/s."
    )
    return ["| Bytes | ms |", "|---|---|", *rows, "", fitted]


def model_table(found: dict[str, Any]) -> list[str]:
    """Speed-ups to 1024 devices, from what one process takes and the network of `NETWORK`."""
    lines = [
        "| Step | " + " | ".join(map(str, DEVICES)) + " |",
        "|---" * (len(DEVICES) + 1) + "|",
    ]
    sizes = {"gradients": 400.0, "factorization": 27_278 * 16 * 4.0}  # bytes that are added up
    for section, size in sizes.items():
        for name, row in found.get(section, {}).get("result", {}).items():
            speeds = [speed_up(row["one"]["wall"], size, d, *NETWORK) for d in DEVICES]
            lines.append(f"| {name} | " + " | ".join(f"{one:.3g}" for one in speeds) + " |")
    return lines


def growth_table(found: dict[str, Any]) -> list[str]:
    """Exponents: of all sizes, and of the two largest in brackets."""
    kinds = ("d", "chains", "data", "modes")
    lines = ["| Sampler | d | chains | data | modes |", "|---|---|---|---|---|"]
    for name, row in found.get("growth", {}).get("result", {}).items():
        cells = [f"{row[k]['fit']:.2f} ({row[k]['last']:.2f})" if k in row else "" for k in kinds]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return lines


TABLES: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "Correctness at 1, 2 and 4 processes": correctness_lines,
    "Two processes over one": efficiency_table,
    "An all-reduce of two processes on one machine": collective_table,
    "Speed-up by the number of devices, as modelled": model_table,
    "Exponents of the cost of a step": growth_table,
}


def tables(found: dict[str, Any]) -> str:
    parts = [[f"### {title}", "", *lines(found), ""] for title, lines in TABLES.items()]
    machines = sorted({section["machine"] for section in found.values()})
    said = "Made by `python benchmarks/scale.py --write` on " + "; ".join(machines) + "."
    return "\n".join([said, "", *(line for part in parts for line in part)])


def machine() -> str:
    names = [
        line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    processor = names[0].split(":")[1].strip() if names else platform.machine()
    return f"{len(os.sched_getaffinity(0))} cores of {processor}"


class Clock:
    """Wall time since it was made, and the share of the cores that others have used since."""

    def __init__(self) -> None:
        self.begin, self.busy, self.own = time.perf_counter(), self._busy(), self._own()

    @staticmethod
    def _busy() -> float:
        """Seconds in which a core was not idle, nor waiting for disks."""
        ticks = [int(one) for one in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def _own() -> float:
        """Seconds of this process, and of those it has waited for."""
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in used)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.begin

    @property
    def others(self) -> float:
        used = self._busy() - self.busy - (self._own() - self.own)
        return max(used, 0.0) / (self.seconds * (os.cpu_count() or 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="all, if not given")
    parser.add_argument("--out", type=Path, default=Path("build/scale.json"))
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scale.md")
    arguments = parser.parse_args()
    found = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in arguments.sections or SECTIONS:
        clock = Clock()
        try:
            with tempfile.TemporaryDirectory() as folder:
                result = SECTIONS[name](Path(folder))
        except Exception:
            traceback.print_exc()
            failed = True
            continue
        seconds, others = clock.seconds, clock.others
        said = {"result": result, "others": others, "machine": machine(), "seconds": seconds}
        found[name] = json.loads(json.dumps(said))  # with the keys that it has when it is read
        arguments.out.write_text(json.dumps(found, indent=1, ensure_ascii=False))
        print(f"{name}: {seconds:.0f} s, others use {others:.0%} of the cores", flush=True)
    print(tables(found))
    if arguments.write:
        text = DOCUMENT.read_text("utf-8")
        head, tail = text.split(BEGIN)[0], text.split(END)[1]
        DOCUMENT.write_text(f"{head}{BEGIN}\n{tables(found)}\n{END}{tail}", "utf-8")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
