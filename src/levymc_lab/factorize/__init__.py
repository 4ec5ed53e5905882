"""Ratings of items by users, from a person's table to predictions with intervals.

`prepare` reads and checks, and writes nothing; `run` fits, and can be interrupted at any time: the
same call goes on.  On the command line this is ``levymc factorize``.

A folder of results holds::

    manifest.json     settings, versions, digest of the data, error and coverage on held-out ratings
    predictions.csv   user, item, mean, low, high, rating (where known), basis
    factors.npz       the last draw of the factors and biases, with the ids
    checkpoint.npz    while the run is not finished
"""

from ._prepare import Job as Job
from ._prepare import prepare as prepare
from ._run import Progress as Progress
from ._run import run as run
from ._table import Settings as Settings
