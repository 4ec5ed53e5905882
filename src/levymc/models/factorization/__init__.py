"""Bayesian matrix factorisation: in pure JAX, by a kernel in C++, and by Gibbs sampling."""

from ._fast import FastFactorization as FastFactorization
from ._fast import fast_factorization as fast_factorization
from ._gibbs import GibbsAlgorithm as GibbsAlgorithm
from ._gibbs import GibbsFactorization as GibbsFactorization
from ._gibbs import gibbs_factorization as gibbs_factorization
from ._model import MatrixFactorization as MatrixFactorization
from ._model import matrix_factorization as matrix_factorization
from ._spread import spread_users as spread_users
