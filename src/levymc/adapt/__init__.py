"""Samplers that need no tuning, and the stages they are made of."""

from ._explore import Modes as Modes
from ._explore import explore as explore
from ._reference import Reference as Reference
from ._reference import reference as reference
from ._tempered import tempered as tempered
