r"""The drift's part of a step of size η: from x to about the flow of dx/dt = b(x) at time η.

An integrator is a function of (drift, position, step size) that returns a `Move`; the noise is
the algorithm's.  The exact drift overflows every float where the target is small, so that all but
`euler` work with its sign and logarithm.
"""

from ._euler import euler as euler
from ._move import Integrator as Integrator
from ._move import Move as Move
from ._split import split as split
from ._tamed import tamed as tamed
