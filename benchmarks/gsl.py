"""GSL's gsl_ran_levy, where GSL and a C compiler are installed."""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

SOURCE = r"""
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
void draw(double alpha, long count, double *out) {
    gsl_rng *generator = gsl_rng_alloc(gsl_rng_mt19937);
    for (long i = 0; i < count; i++) out[i] = gsl_ran_levy(generator, 1.0, alpha);
    gsl_rng_free(generator);
}
"""


def sampler(alpha: float, count: int) -> Callable[[], np.ndarray] | None:
    """A function that fills an array with draws, or None where GSL is missing."""
    compiler, configuration = shutil.which("cc"), shutil.which("gsl-config")
    if compiler is None or configuration is None:
        return None
    flags = subprocess.run([configuration, "--cflags", "--libs"], capture_output=True, text=True)
    folder = Path(tempfile.mkdtemp())
    (folder / "draw.c").write_text(SOURCE)
    command = [compiler, "-O2", "-shared", "-fPIC", "draw.c", "-o", "draw.so"]
    subprocess.run([*command, *flags.stdout.split()], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "draw.so"))
    library.draw.argtypes = [ctypes.c_double, ctypes.c_long, ctypes.c_void_p]
    out = np.empty(count)

    def draw() -> np.ndarray:
        library.draw(alpha, count, out.ctypes.data)
        return out

    return draw
