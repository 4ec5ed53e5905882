"""Models with algorithms of their own: ratings of items by users, and sigmoid belief networks."""

from levymc._native import BuildError as BuildError
from levymc._native import backend as backend

from .factorization import FastFactorization as FastFactorization
from .factorization import GibbsFactorization as GibbsFactorization
from .factorization import MatrixFactorization as MatrixFactorization
from .factorization import fast_factorization as fast_factorization
from .factorization import gibbs_factorization as gibbs_factorization
from .factorization import matrix_factorization as matrix_factorization
from .factorization import spread_users as spread_users
from .sbn import Annealed as Annealed
from .sbn import BeliefNetwork as BeliefNetwork
from .sbn import annealed_loglikelihood as annealed_loglikelihood
from .sbn import pixel_rates as pixel_rates
from .sbn import sbn as sbn
