"""Ratings and pictures from files, and a cache of data sets.

`read` takes what MovieLens publishes, `read_table` a table of one's own; both give `Ratings`:
compact arrays, sorted, with the original ids beside them.  `read_pairs` takes a table of users and
items alone.  `read_images` takes the four files of MNIST, or others like them, and gives `Images`;
`binarize` makes their greys 0 and 1.

`import_dataset` and `fetch` put a named data set into the cache, from which `load` takes it; on the
command line these are ``levymc data import`` and ``levymc data fetch``.  No data come with this
package.  `synthetic` makes ratings and `synthetic_images` pictures, in any number; `write` and
`write_images` write them in the official formats.
"""

from ._dataset import CacheError as CacheError
from ._dataset import DataError as DataError
from ._dataset import Dataset as Dataset
from ._dataset import Download as Download
from ._dataset import DownloadError as DownloadError
from ._dataset import MissingDataError as MissingDataError
from ._fetch import fetch as fetch
from ._images import Images as Images
from ._images import binarize as binarize
from ._images import read_images as read_images
from ._images import write_images as write_images
from ._movielens import published_scale as published_scale
from ._movielens import read as read
from ._movielens import write as write
from ._ratings import Ratings as Ratings
from ._ratings import split as split
from ._store import cache_folder as cache_folder
from ._store import cached as cached
from ._store import get as get
from ._store import import_dataset as import_dataset
from ._store import load as load
from ._store import names as names
from ._synthetic import SIZES as SIZES
from ._synthetic import Size as Size
from ._synthetic import synthetic as synthetic
from ._synthetic import synthetic_images as synthetic_images
from ._table import Pairs as Pairs
from ._table import check_scale as check_scale
from ._table import read_pairs as read_pairs
from ._table import read_table as read_table
