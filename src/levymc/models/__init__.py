"""Targets to try samplers on: log densities as plain functions, and what is known of their laws."""

from levymc._native import BuildError as BuildError
from levymc._native import backend as backend

from ._cauchy import cauchy as cauchy
from ._double_well import double_well as double_well
from ._four_modes import FOUR_MODES_MEANS as FOUR_MODES_MEANS
from ._four_modes import FOUR_MODES_SCALE as FOUR_MODES_SCALE
from ._four_modes import FOUR_MODES_WEIGHTS as FOUR_MODES_WEIGHTS
from ._four_modes import four_modes as four_modes
from ._gaussian_mixture import gaussian_mixture as gaussian_mixture
from ._student_t import student_t as student_t
from .factorization import FastFactorization as FastFactorization
from .factorization import GibbsFactorization as GibbsFactorization
from .factorization import MatrixFactorization as MatrixFactorization
from .factorization import fast_factorization as fast_factorization
from .factorization import gibbs_factorization as gibbs_factorization
from .factorization import matrix_factorization as matrix_factorization
from .sbn import Annealed as Annealed
from .sbn import BeliefNetwork as BeliefNetwork
from .sbn import annealed_loglikelihood as annealed_loglikelihood
from .sbn import pixel_rates as pixel_rates
from .sbn import sbn as sbn
