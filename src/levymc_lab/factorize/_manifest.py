"""What a fit was: enough to make it again, and nothing about whose machine it was."""

import json
import os
import platform
from datetime import UTC, datetime
from typing import Any

from levymc_lab.framework import versions

from ._folder import KIND
from ._prepare import Job
from ._sampler import batch_size_of
from ._settings import (
    CAUTION_A_COLUMN,
    EVERY,
    FACTOR_SQUARE,
    HELD_OUT,
    NUM_BIASES,
    STEP_SIZE,
    TRUNCATION,
)
from ._table import scale_of

FORMAT = 1


def new_manifest(job: Job) -> dict[str, Any]:
    """The manifest of a run that is about to begin."""
    whole, settings = job.table.whole, job.settings
    scale = scale_of(job.table.training, settings.rank)
    content = {
        "format": FORMAT,
        "kind": KIND,
        "identity": job.identity,
        "source": job.source,
        "num_ratings": whole.num_ratings,
        "num_users": whole.num_users,
        "num_items": whole.num_items,
        "held_out_share": HELD_OUT,
        "center": scale.center,
        "spread": scale.spread,
        "noise": settings.noise,
        "noise_is_estimated": settings.noise is None,
        "sampler": {
            "batch_size": batch_size_of(job.table.training.num_ratings),
            "step_size": STEP_SIZE,
            "burn_in": settings.burn_in,
            "steps_between_draws": EVERY,
            "noise_truncated_at": TRUNCATION,
            "has_curvature_steps": True,
            "has_biases": True,
            "row_steps": {
                "s2": FACTOR_SQUARE,
                "c": CAUTION_A_COLUMN * (settings.rank + NUM_BIASES),
            },
        },
        "versions": versions(),
        "host_cores": os.cpu_count(),
        "platform": f"{platform.system()} {platform.machine()}",
        "started": now(),
        "finished": None,
        "wall_seconds": 0.0,
        "status": "running",
    }
    return json.loads(json.dumps(content))  # as it will be read


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
