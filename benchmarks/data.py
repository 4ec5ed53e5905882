"""Time and memory to read 20 million ratings, on synthetic data of MovieLens 20M's size and skew.

Not the true archive, which may not be passed on: `levymc_lab.data.synthetic`, written in the format
of its `ratings.csv`.  The reader runs in a process of its own: its memory alone is measured.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bars import Bar, show

from levymc_lab import data

SECONDS, GIGABYTES = 20.0, 2.0
READ = "--read"


def read_synthetic_data() -> list[Bar]:
    """Make the file, read it apart, and compare."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        ratings = data.synthetic(*data.SIZES["ml-20m"])
        making = time.perf_counter() - begin
        file = data.write(ratings, Path(folder) / "ratings.csv")
        begin = time.perf_counter()
        data.split(ratings, 0)
        splitting = time.perf_counter() - begin
        size = file.stat().st_size / 1e6
        answer = subprocess.run(
            [sys.executable, __file__, READ, str(file)],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        ).stdout.split()
    seconds, gigabytes, count = (float(number) for number in answer)
    if count != ratings.num_ratings:
        raise RuntimeError(f"{count:.0f} ratings were read of {ratings.num_ratings}.")
    return [
        Bar("read 20M ratings (synthetic data, CSV)", seconds, "s", SECONDS),
        Bar("peak memory, JAX and all (synthetic data)", gigabytes, "GB", GIGABYTES),
        Bar("size of the file (synthetic data)", size, "MB"),
        Bar("make 20M ratings", making, "s"),
        Bar("split 20M ratings 90:10 (synthetic data)", splitting, "s"),
    ]


def report_read(path: str) -> None:
    """Read and print seconds, peak memory in GB and the number of ratings."""
    begin = time.perf_counter()
    ratings = data.read(path)
    seconds = time.perf_counter() - begin
    print(seconds, peak_bytes() / 1e9, ratings.num_ratings)


def peak_bytes() -> int:
    """The largest memory of this process; where Linux tells it, without that of its parent."""
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    if READ in sys.argv:
        report_read(sys.argv[-1])
    else:
        show(read_synthetic_data())
