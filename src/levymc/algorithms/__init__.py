"""Samplers, in BlackJAX's shape: init(position) -> State, step(key, state) -> (State, Info)."""

from ._augmented import AugmentedState as AugmentedState
from ._augmented import augmented as augmented
from ._base import Algorithm as Algorithm
from ._base import Info as Info
from ._base import LangevinState as LangevinState
from ._base import SamplingAlgorithm as SamplingAlgorithm
from ._base import State as State
from ._base import as_algorithm as as_algorithm
from ._base import keep_finite as keep_finite
from ._base import name_of_other as name_of_other
from ._base import start_at as start_at
from ._dense import Dense as Dense
from ._fla import fla as fla
from ._fla import ula as ula
from ._flmc import flmc as flmc
from ._grad_estimator import grad_estimator as grad_estimator
from ._jumping import JumpingState as JumpingState
from ._jumping import jumping as jumping
from ._levy_walk import levy_walk as levy_walk
from ._mafla import mafla as mafla
from ._sgfla import sgfla as sgfla
from ._sgfla import sgld as sgld
from ._spread import Layout as Layout
from ._spread import Spread as Spread
from ._spread import over_devices as over_devices
from ._stable_like import stable_like as stable_like
