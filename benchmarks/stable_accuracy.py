"""Worst relative error of the law against the mpmath oracle."""

import json
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from bars import Bar

from levymc import stable

ORACLE = Path(__file__).parents[1] / "tests/core/data/stable_oracle.json"
COLUMNS = {"pdf": "pdf", "sf": "sf", "score": "score", "logpdf": "log_pdf"}


def worst_errors() -> Iterator[Bar]:
    oracle = json.loads(ORACLE.read_text())
    for dtype, limit in (("float64", 1e-8), ("float32", 1e-5)):
        rows = oracle[dtype]
        alpha, x = (jnp.asarray([float(r[k]) for r in rows], dtype) for k in ("alpha", "x"))
        for name, column in COLUMNS.items():
            exact = np.array([float(row[column]) for row in rows])
            found = np.asarray(jax.vmap(getattr(stable, name))(x, alpha), np.float64)
            # Below the smallest normal number no relative error can be kept.
            kept = np.abs(exact) > (1e-37 if dtype == "float32" else 1e-300)
            error = np.max(np.abs(found - exact)[kept] / np.abs(exact)[kept])
            if name == "logpdf":
                error = np.max(np.abs(found - exact) / np.maximum(1, np.abs(exact)))
            yield Bar(f"{name}, {dtype}, worst error", float(error), "", limit)
