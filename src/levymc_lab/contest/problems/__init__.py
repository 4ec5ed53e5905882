"""The problems of the contest: densities with known truth, by name.

The *development* problems are those on which the constants of `levymc.auto` were chosen; the
*final* ones were not looked at for that.  Truth comes from formulas, quadrature or symmetry
wherever there is one; else from a long run, which states its own standard error.
"""

from . import _development as _development
from . import _hard as _hard
from . import _modes as _modes
from . import _posteriordb as _posteriordb
from . import _posteriors as _posteriors
from . import _turned as _turned
from ._problem import LEVELS as LEVELS
from ._problem import Coordinate as Coordinate
from ._problem import Marginal as Marginal
from ._problem import Problem as Problem
from ._problem import Truth as Truth
from ._problem import get as get
from ._problem import names as names
from ._references import quantiles_of as quantiles_of
