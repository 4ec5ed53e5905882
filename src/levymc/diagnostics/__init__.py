"""What to know of draws before they are believed, none of it in need of a variance."""

from ._check import check as check
from ._convergence import ess as ess
from ._convergence import rhat as rhat
from ._distances import mass_left_of as mass_left_of
from ._distances import total_variation as total_variation
from ._distances import wasserstein as wasserstein
from ._enough import enough as enough
from ._jumps import hops as hops
from ._jumps import jumps as jumps
from ._report import Finding as Finding
from ._report import Report as Report
from ._stationarity import Balance as Balance
from ._stationarity import Stationarity as Stationarity
from ._stationarity import stationarity as stationarity
from ._stein import kernel_stein_discrepancy as kernel_stein_discrepancy
from ._summary import Summary as Summary
from ._summary import summary as summary
from ._tails import TailIndex as TailIndex
from ._tails import draw_tail_index as draw_tail_index
from ._tails import increment_tail_index as increment_tail_index
from ._tails import tail_index as tail_index
