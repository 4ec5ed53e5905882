"""The paper's figures and tables, each run, checked against what was published, and judged.

An experiment is one package with a constant ``EXPERIMENT``, an `Experiment`, entered by its name
into ``MODULES`` of ``_registry.py``.  `run` cuts it into cells, independent units of work, each of
which is deterministic in the seed and its own id and is kept on disk as soon as it is made: a run
that was killed goes on with the next missing cell.  From the cells come tables, from the tables
the checks, the verdict and the figures::

    cells(config)                   -> [Cell(id, parameters), …]
    run_cell(config, cell, key)     -> {name: number, text or array}, maybe in another process
    summarise(config, results)      -> {name: Table}, where results[cell.id] is such a dictionary
    checks(config, tables)          -> [Check.near(…), Check.below(…), …]
    verdict(config, tables, checks) -> Verdict(kind, words)
    figures(config, tables)         -> {name: matplotlib Figure}, the names those of `captions`

``config`` is a frozen dataclass of numbers, texts and tuples of them, one for each profile:
``quick`` (seconds) and ``paper`` (the paper's sizes).  All six are called with 64-bit types allowed
if the experiment's dtype is float64, whatever JAX's global setting.  They must be functions of a
module, not lambdas, so that other processes can find them.  Work whose parts depend on each other
(tune, then report) is one cell.  matplotlib is imported inside ``figures`` only.

A results folder, OUT/NAME, holds::

    manifest.json     configuration, seed, versions, git revision, wall time, status
    cells/ID.npz      one for each cell; needed until the tables are made
    tables/*.csv, *.json
    checks.json       checks and verdict
    figures/*.png, *.svg

Nothing there is written over: what is missing is made again.  To redraw, remove figures/ and run.
"""

from ._check import Check as Check
from ._check import Verdict as Verdict
from ._experiment import Cell as Cell
from ._experiment import Experiment as Experiment
from ._folder import MismatchError as MismatchError
from ._folder import ResultsError as ResultsError
from ._manifest import versions as versions
from ._published import published as published
from ._registry import get as get
from ._registry import names as names
from ._results import Results as Results
from ._results import load as load
from ._run import preflight as preflight
from ._run import run as run
from ._table import Table as Table
