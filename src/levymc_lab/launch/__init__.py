"""Start a script several times at once, as processes that know of one another."""

from ._processes import Ended as Ended
from ._processes import launch as launch
