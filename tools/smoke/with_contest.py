"""The peer of the laboratory's contest is there."""

import emcee

assert emcee.EnsembleSampler
