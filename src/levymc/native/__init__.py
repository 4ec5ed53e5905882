"""Kernels in C++, called from inside compiled JAX programs, and what to do without a compiler."""

from ._backend import BACKENDS as BACKENDS
from ._backend import backend as backend
from ._belief import Sweeps as Sweeps
from ._belief import belief_sweeps as belief_sweeps
from ._build import BuildError as BuildError
from ._build import build_library as build_library
from ._factorization import SEGMENTS as SEGMENTS
from ._factorization import TARGETS as TARGETS
from ._factorization import Setting as Setting
from ._factorization import batch_counts as batch_counts
from ._factorization import factorization_step as factorization_step
from ._gibbs import GibbsSetting as GibbsSetting
from ._gibbs import gibbs_sweep as gibbs_sweep
from ._load import load as load
