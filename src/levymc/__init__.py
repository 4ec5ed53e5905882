"""Lévy-driven Markov chain Monte Carlo for JAX."""

from importlib.metadata import version

from . import drifts as drifts
from . import riesz as riesz
from . import stable as stable

__version__ = version("levymc")
