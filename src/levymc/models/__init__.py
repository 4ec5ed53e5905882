"""Targets to try samplers on: log densities as plain functions, and what is known of their laws."""

from ._factorization_fast import FastFactorization as FastFactorization
from ._factorization_fast import fast_factorization as fast_factorization
from ._factorization_gibbs import GibbsFactorization as GibbsFactorization
from ._factorization_gibbs import gibbs_factorization as gibbs_factorization
from ._matrix_factorization import MatrixFactorization as MatrixFactorization
from ._matrix_factorization import matrix_factorization as matrix_factorization
from ._sbn import BeliefNetwork as BeliefNetwork
from ._sbn import sbn as sbn
from ._sbn_ais import Annealed as Annealed
from ._sbn_ais import annealed_loglikelihood as annealed_loglikelihood
from ._sbn_ais import pixel_rates as pixel_rates
