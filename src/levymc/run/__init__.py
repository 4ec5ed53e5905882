"""Many chains in one compiled program, and what they leave behind."""

from . import observe as observe
from ._batches import Batches as Batches
from ._batches import Whole as Whole
from ._batches import batches as batches
from ._batches import whole as whole
from ._result import Result as Result
from ._resume import load as load
from ._resume import resume as resume
from ._sample import sample as sample
