"""The paper's figures and tables, each run, checked against what was published, and judged.

An experiment is one package with a constant ``EXPERIMENT``, an `Experiment`, entered by its name
into ``MODULES`` of ``_registry.py``.  `run` cuts it into cells, independent units of work, each of
which is deterministic in the seed and its own id and is kept on disk as soon as it is made: a run
that was killed goes on with the next missing cell, and inside it if the cell kept a store of its
chain in ``cell.folder``.  From the cells come tables, from the tables
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

    manifest.json     configuration, seed, versions, wall time, status; of each cell the git
                      revision and the time at which it was made; the SHA-256 of the tables
    cells/ID.npz      one for each cell; needed until the tables are made
    cells/ID/         while the cell is made, what it needs to go on if it is killed
    tables/*.csv, *.json
    checks.json       checks and verdict
    figures/*.png, *.svg

An experiment whose data others may stand in for names their ``sources``, real or synthetic, which
the manifest keeps: where they have changed the folder is refused, as one of another seed is.

Nothing there is written over: what is missing is made again.  To redraw, remove figures/ and run.
Tables that were changed after they were made are refused, and so nothing is judged or drawn from
them.  Results of manifests without checksums, as they were before, are read and marked.

An experiment of many cells shows what has been run so far if it says ``shows_parts=True``.  Its
``summarise`` then takes the results of any cells but none (the mapping lacks the others, so go
through what is there instead of asking for an id), its checks are those that can be made, and every
figure is drawn, with gaps.  Of a run that was stopped or is still going on in another process the
page shows all this, marked "so far: 17 of 63 cells"; `so_far` makes it in memory from the cells
that are there, and writes nothing.
"""

from levymc._workdir import MismatchError as MismatchError
from levymc._workdir import ResultsError as ResultsError
from levymc._workdir import versions as versions

from ._check import Check as Check
from ._check import Verdict as Verdict
from ._cluster import Cluster as Cluster
from ._cluster import connect as connect
from ._experiment import REAL as REAL
from ._experiment import SYNTHETIC as SYNTHETIC
from ._experiment import Cell as Cell
from ._experiment import CellResult as CellResult
from ._experiment import Experiment as Experiment
from ._experiment import Tables as Tables
from ._experiment import nearest as nearest
from ._registry import get as get
from ._registry import names as names
from ._results import Results as Results
from ._results import SoFar as SoFar
from ._results import has_checksums as has_checksums
from ._results import load as load
from ._results import so_far as so_far
from ._run import preflight as preflight
from ._run import run as run
from ._table import Table as Table
