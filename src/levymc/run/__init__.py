"""Many chains in one compiled program, and what they leave behind."""

from . import marks as marks
from . import observe as observe
from ._arviz import to_groups as to_groups
from ._devices import own_chains as own_chains
from ._integrity import AUTO as AUTO
from ._integrity import StoreError as StoreError
from ._integrity import fingerprint as fingerprint
from ._iterate import Visit as Visit
from ._iterate import iterate as iterate
from ._minibatches import Batches as Batches
from ._minibatches import Whole as Whole
from ._minibatches import batches as batches
from ._minibatches import whole as whole
from ._progress import stage_bar as stage_bar
from ._result import Result as Result
from ._sample import Tally as Tally
from ._sample import check_shards as check_shards
from ._sample import load as load
from ._sample import resume as resume
from ._sample import sample as sample
from ._sample import work as work
