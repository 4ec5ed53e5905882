"""Lévy-driven Markov chain Monte Carlo for JAX."""

import os as _os
import signal as _signal
import sys as _sys

if (
    _sys.argv[:1] == ["-m"]
    and ("-m", "levymc") in zip(_sys.orig_argv, _sys.orig_argv[1:], strict=False)
    and _signal.getsignal(_signal.SIGINT) is not _signal.SIG_IGN
):
    # This is the command, `python -m levymc`, and nobody's library: while all of the below is
    # imported, Ctrl-C ends the process quietly, as `levymc_lab._interrupt` explains.
    _signal.signal(_signal.SIGINT, lambda *_: _os._exit(130))

from levymc import adapt as adapt
from levymc import algorithms as algorithms
from levymc import diagnostics as diagnostics
from levymc import distributed as distributed
from levymc import drifts as drifts
from levymc import integrators as integrators
from levymc import interop as interop
from levymc import models as models
from levymc import noises as noises
from levymc import riesz as riesz
from levymc import schedules as schedules
from levymc import stable as stable
from levymc import targets as targets
from levymc import theory as theory
from levymc._cache import enable_compilation_cache as enable_compilation_cache
from levymc.adapt import auto as auto
from levymc.adapt import minimize as minimize
from levymc.algorithms import augmented as augmented
from levymc.algorithms import fla as fla
from levymc.algorithms import flmc as flmc
from levymc.algorithms import grad_estimator as grad_estimator
from levymc.algorithms import jumping as jumping
from levymc.algorithms import levy_walk as levy_walk
from levymc.algorithms import mafla as mafla
from levymc.algorithms import proximal as proximal
from levymc.algorithms import sgfla as sgfla
from levymc.algorithms import sgld as sgld
from levymc.algorithms import stable_like as stable_like
from levymc.algorithms import ula as ula
from levymc.algorithms import underdamped as underdamped
from levymc.diagnostics import enough as enough
from levymc.interop import optax as optax
from levymc.run import Result as Result
from levymc.run import batches as batches
from levymc.run import iterate as iterate
from levymc.run import load as load
from levymc.run import marks as marks
from levymc.run import observe as observe
from levymc.run import resume as resume
from levymc.run import sample as sample
from levymc.run import whole as whole

__version__ = "0.1.0"
