"""Samplers that tune themselves: maps of the tails, warm-ups, and the evidence of a model."""

from ._adapted import Adapted as Adapted
from ._bridge import Evidence as Evidence
from ._bridge import log_evidence as log_evidence
from ._nuts import Nuts as Nuts
from ._nuts import nuts as nuts
from ._tail_map import Fitted as Fitted
from ._tail_map import TailMap as TailMap
from ._tail_map import identity as identity
from ._tail_map import tail_map as tail_map
from ._warm_up import one_mode as one_mode
from ._warm_up import warm_up as warm_up
