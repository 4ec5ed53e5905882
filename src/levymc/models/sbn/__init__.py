"""Sigmoid belief networks: the model, its Gibbs samplers, and annealed likelihoods."""

from ._annealing import Annealed as Annealed
from ._annealing import annealed_loglikelihood as annealed_loglikelihood
from ._annealing import pixel_rates as pixel_rates
from ._model import BeliefNetwork as BeliefNetwork
from ._model import sbn as sbn
