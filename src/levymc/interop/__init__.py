"""levymc beside other libraries: a module each, which needs that library and no other."""

from . import blackjax as blackjax
from . import pymc as pymc
