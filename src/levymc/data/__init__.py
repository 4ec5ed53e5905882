"""Ratings from files, and a cache of data sets.

`read` takes what MovieLens publishes, `read_table` a table of one's own; both give `Ratings`:
compact arrays, sorted, with the original ids beside them.  `read_pairs` takes a table of users and
items alone.  `import_dataset` and `fetch` put a named data set into the cache, from which `load`
takes it; on the command line these are ``levymc data import`` and ``levymc data fetch``.  No data
come with this package.  `synthetic` makes some, of any size, and `write` writes them in the
official formats.
"""

from ._cache import cache_folder as cache_folder
from ._dataset import Dataset as Dataset
from ._dataset import Download as Download
from ._errors import CacheError as CacheError
from ._errors import DataError as DataError
from ._errors import DownloadError as DownloadError
from ._errors import MissingDataError as MissingDataError
from ._fetch import fetch as fetch
from ._import import cached as cached
from ._import import import_dataset as import_dataset
from ._import import load as load
from ._pairs import Pairs as Pairs
from ._pairs import read_pairs as read_pairs
from ._ratings import Ratings as Ratings
from ._read import read as read
from ._registry import get as get
from ._registry import names as names
from ._split import split as split
from ._synthetic import SIZES as SIZES
from ._synthetic import Size as Size
from ._synthetic import synthetic as synthetic
from ._table import read_table as read_table
from ._write import write as write
