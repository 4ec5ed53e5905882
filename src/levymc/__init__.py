"""Lévy-driven Markov chain Monte Carlo for JAX: several modes, heavy tails, minibatches.

Where to begin, by what you have; ``help`` of each has an example:

- a log density, and no idea of its scales: `levymc.auto(logdensity_fn, key, starts)`, and then
  ``print(result.report)``;
- a model: `levymc.interop.numpyro.sample` and `levymc.interop.pymc.sample`;
- a log density in NumPy: `levymc.interop.numpy.as_logdensity`;
- more data than a gradient can take at once: `levymc.sgld` with `levymc.batches`, and
  `levymc.jumping` around it for several modes;
- a function whose lowest minimum is wanted: `levymc.minimize`.

A sampler, a run, and what to make of it:

>>> import jax, jax.numpy as jnp, levymc
>>> walk = levymc.levy_walk(levymc.targets.double_well, scale=1.0, alpha=1.2)
>>> starts = jnp.full(4, -3.6)  # all in the left one of two wells
>>> result = levymc.sample(walk, jax.random.key(0), starts, 20_000, progress=False)
>>> bool((result.positions > 3).any(axis=1).all())  # and yet each has found the other
True

- Samplers, exact ones first: `levy_walk`, `mafla`, `proximal`; `flmc`, `fla`, `ula`, `underdamped`,
  `stable_like`; of minibatches `sgfla`, `sgld`, `jumping`.  Each says what it targets and when it
  is not valid.
- Runs: `sample`, `iterate`; on disk `load`, `resume`; `enough` as a rule to stop by, `observe` for
  statistics of runs that are too long to be kept.
- Judging: `diagnostics.check` says in words what looks wrong; `diagnostics.summary`.
- Parts: `stable`, the α-stable law; `riesz`, fractional derivatives; `drifts`, `integrators`,
  `noises` and `schedules`, of which steps are made; `adapt`, the stages of `auto`; `models`,
  `targets`, `theory`.

In a shell ``levymc doctor`` shows what is installed, and ``levymc demo`` why jumps matter; both
come with the extra ``lab``.
"""

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

__version__ = "0.4.0"
