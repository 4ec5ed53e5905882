"""Samplers that need no tuning, and the stages they are made of."""

from ._adapted import Adapted as Adapted
from ._auto import auto as auto
from ._bridge import Evidence as Evidence
from ._bridge import log_evidence as log_evidence
from ._explore import Modes as Modes
from ._explore import explore as explore
from ._minimize import Minimum as Minimum
from ._minimize import minimize as minimize
from ._nuts import Nuts as Nuts
from ._nuts import nuts as nuts
from ._outcome import AutoResult as AutoResult
from ._outcome import FoundModes as FoundModes
from ._path import PathEvidence as PathEvidence
from ._path import path_evidence as path_evidence
from ._reference import Reference as Reference
from ._reference import reference as reference
from ._tail_map import Fitted as Fitted
from ._tail_map import TailMap as TailMap
from ._tail_map import identity as identity
from ._tail_map import tail_map as tail_map
from ._tempered import tempered as tempered
from ._thermodynamic import thermodynamic_integration as thermodynamic_integration
from ._warm_up import one_mode as one_mode
from ._warm_up import warm_up as warm_up
