"""levymc beside other libraries: a module each, which needs that library and no other.

Where a module cannot even be read without its library, it is imported when it is first asked for.
"""

import importlib as _importlib
from typing import Any as _Any

from . import blackjax as blackjax
from . import numpy as numpy
from . import optax as optax
from . import pymc as pymc

_ON_DEMAND = ("diffrax", "numpyro")


def __getattr__(name: str) -> _Any:
    if name in _ON_DEMAND:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
