"""Pictures with labels, in the four idx files in which MNIST is published; grey, or 0 and 1.

An idx file is two zero bytes, a byte for the type of number, a byte for the number of dimensions,
each dimension as four bytes, the highest first, and then the numbers.
"""

import gzip
import hashlib
import math
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from levymc._checks import check_interval, check_seed
from levymc._workdir import atomic_bytes

from ._dataset import DataError, Dataset, Download
from ._sources import Readable, Source, find_all

FILES = {
    "train_images": "train-images-idx3-ubyte",
    "train_labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}
Shape = tuple[int | None, ...]  # None stands for any size
ANY_SHAPES: dict[str, Shape] = {
    name: (None, None, None) if name.endswith("images") else (None,) for name in FILES
}

GZIP_BEGINS = b"\x1f\x8b"
UBYTE = 8
OTHER_TYPES = {9: "int8", 11: "int16", 12: "int32", 13: "float32", 14: "float64"}
MOST_DIMENSIONS = 8
MOST_BYTES = 2**30  # MNIST's pictures are 47 MB; a header may claim anything
CHUNK = 2**20
DAMAGE = (gzip.BadGzipFile, zlib.error, EOFError)
AS_PUBLISHED = "Take the file as published."

FULL_INK = 255
WORDS_AT_ONCE = 2**20  # random words, 8 bytes each
UNIT = 2.0**-53  # of the top 53 bits of a word, as a float64 holds them

# The makers' own site, yann.lecun.com/exdb/mnist, has often turned downloads away; this copy, from
# which PyTorch takes it, has the same bytes: the MD5s below are those long known of the original.
ADDRESS = "https://ossci-datasets.s3.amazonaws.com/mnist"
LICENCE = """\
The copyright in MNIST is held by Yann LeCun (Courant Institute, NYU) and Corinna Cortes (Google
Labs, New York). It is a derivative work of data sets of NIST, and is commonly taken to be under
the Creative Commons Attribution-ShareAlike 3.0 licence
(https://creativecommons.org/licenses/by-sa/3.0/): share it, also changed, with attribution and
under the same terms."""
CITATION = (
    "Yann LeCun, Léon Bottou, Yoshua Bengio and Patrick Haffner. 1998. Gradient-Based Learning "
    "Applied to Document Recognition. Proceedings of the IEEE 86, 11, 2278–2324. "
    "doi:10.1109/5.726791"
)
NUM_CLASSES = 10


class Published(NamedTuple):
    """A file of MNIST.

    Attributes:
        shape: of its array.
        contents: the SHA-256 of the array alone, packed or not.
        sha256: of the gzipped file.
        md5: likewise.
    """

    shape: tuple[int, ...]
    contents: str
    sha256: str
    md5: str | None


MNIST = {
    "train_images": Published(
        (60_000, 28, 28),
        "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    ),
    "train_labels": Published(
        (60_000,),
        "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "d53e105ee54ea40749a09fcbcd1e9432",
    ),
    "test_images": Published(
        (10_000, 28, 28),
        "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "9fb629c4189551a2d022fa330f9573f3",
    ),
    "test_labels": Published(
        (10_000,),
        "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
}


class Images(NamedTuple):
    """Grey pictures and what they show, to learn from and to test on.

    Attributes:
        train_images: (count, height, width), uint8; 0 is the paper and 255 full ink.
        train_labels: (count,), uint8; for MNIST the digit.
        test_images: likewise, of the same height and width.
        test_labels: likewise.

    Examples:
        >>> import levymc_lab.data
        >>> draw = levymc_lab.data.synthetic_images
        >>> pictures = levymc_lab.data.Images(*draw(60, seed=1), *draw(10, seed=2))
        >>> pictures.train_images.shape, pictures.test_labels.shape
        ((60, 28, 28), (10,))
    """

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def read_images(path: str | os.PathLike[str]) -> Images:
    """Read pictures and labels from four files named and made as MNIST's.

    These are `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte` and
    `t10k-labels-idx1-ubyte`; each plain or gzipped, also as `train-images.idx3-ubyte`.  Where a
    file is there more than once, the copies have to be equal.

    Args:
        path: the folder or zip archive that holds them, or holds a folder that does.

    Raises:
        DataError: a file that is missing, damaged, or under another's name; counts that differ.
        OSError: a file cannot be read.

    Examples:
        >>> import tempfile, levymc_lab.data
        >>> draw = levymc_lab.data.synthetic_images
        >>> pictures = levymc_lab.data.Images(*draw(60, seed=1), *draw(10, seed=2))
        >>> folder = levymc_lab.data.write_images(pictures, tempfile.mkdtemp())
        >>> bool((levymc_lab.data.read_images(folder).train_images == pictures.train_images).all())
        True
    """
    return _read_shaped(Path(path), ANY_SHAPES)


def write_images(images: Images, folder: str | os.PathLike[str], compress: bool = True) -> Path:
    """Write pictures and labels as MNIST is published.

    Args:
        images: arrays of uint8.
        folder: of the four files, each of which is replaced in one step.
        compress: with gzip, as published; the same pictures give the same bytes.

    Returns:
        The folder.

    Raises:
        ValueError: arrays that are no pictures, or no labels.

    Examples: see `levymc_lab.data.read_images`.
    """
    for name, array in images._asdict().items():
        if array.dtype != np.uint8 or array.ndim != len(ANY_SHAPES[name]):
            raise ValueError(
                f"`{name}` must be uint8 with {len(ANY_SHAPES[name])} dimensions, got {array.dtype}"
                f" with shape {array.shape}. Convert it."
            )
    for name, array in images._asdict().items():
        content = idx_bytes(array)
        if compress:
            content = gzip.compress(content, mtime=0)
        atomic_bytes(Path(folder) / (FILES[name] + ".gz" * compress), content)
    return Path(folder)


def _read_shaped(path: Path, shapes: Mapping[str, Shape]) -> Images:
    """Read pictures, having refused other shapes than these before the files are read whole."""
    images = Images(**{name: _read_file(path, name, shapes[name]) for name in FILES})
    for part in ("train", "test"):
        pictures, labels = f"{part}_images", f"{part}_labels"
        num_pictures, num_labels = len(getattr(images, pictures)), len(getattr(images, labels))
        if num_pictures != num_labels:
            raise DataError(
                f"{path}: {FILES[pictures]} holds {num_pictures} pictures and {FILES[labels]} "
                f"{num_labels} labels. Are they of one data set?"
            )
    train, test = images.train_images.shape[1:], images.test_images.shape[1:]
    if train != test:
        raise DataError(
            f"{path}: the pictures to learn from are {train[0]} × {train[1]}, those to test on "
            f"{test[0]} × {test[1]}. Are they of one data set?"
        )
    return images


def _read_file(path: Path, name: str, expected: Shape) -> np.ndarray:
    names = spellings(name)
    sources = find_all(path, names)
    if not sources:
        raise DataError(
            f"{path}: holds no {names[0]}, nor {', '.join(names[1:])}. "
            f"All {len(FILES)} files are needed: is it another data set?"
        )
    first, *others = sources
    array = read_idx(first, partial(_check_shape, expected))
    for other in others:
        if not np.array_equal(array, read_idx(other, partial(_check_shape, expected))):
            raise DataError(
                f"{first.label} and {other.label} differ. Remove the one that is wrong."
            )
    return array


def spellings(name: str) -> list[str]:
    """The names under which a file is met, the published one first."""
    official = FILES[name]
    dotted = official.replace("-idx", ".idx")
    return [f"{official}.gz", official, dotted, f"{dotted}.gz"]


def _check_shape(expected: Shape, shape: tuple[int, ...]) -> None:
    agrees = len(shape) == len(expected) and all(
        size == wanted if wanted is not None else size > 0
        for size, wanted in zip(shape, expected, strict=True)
    )
    if not agrees:
        raise ValueError(
            f"holds {_described(shape)}, where {_described(expected)} are expected. "
            "Are files under each other's names, or of another data set?"
        )


def _described(shape: Shape) -> str:
    """A shape in words.

    >>> _described((60000, 28, 28)), _described((10000,)), _described((None, None, None))
    ('60000 pictures of 28 × 28', '10000 labels', 'pictures')
    """
    if len(shape) not in (1, 3):
        return f"an array of {len(shape)} dimensions"
    count = "" if shape[0] is None else f"{shape[0]} "
    if len(shape) == 1:
        return f"{count}labels"
    return f"{count}pictures" + ("" if None in shape[1:] else f" of {shape[1]} × {shape[2]}")


# idx files.


def read_idx(source: Source, check_shape: Callable[[tuple[int, ...]], None]) -> np.ndarray:
    """Read an idx file of unsigned bytes; memory grows with what is there, not what is claimed.

    Args:
        source: plain or gzipped; its first bytes decide, not its name.
        check_shape: is given the shape before anything else is read, and raises a ValueError
            where it is not what is wanted.

    Raises:
        DataError: no idx file, another type of number, cut short, damaged, or too long.
    """
    with _unpacked(source) as stream:
        try:
            shape = _shape(stream)
            check_shape(shape)
            content = _body(stream, shape)
        except ValueError as error:
            raise DataError(f"{source.label}: {error}") from None
    return np.frombuffer(content, np.uint8).reshape(shape)


def idx_bytes(array: np.ndarray) -> bytes:
    """The idx file of an array of uint8."""
    header = struct.pack(f">HBB{array.ndim}I", 0, UBYTE, array.ndim, *array.shape)
    return header + array.tobytes()


@contextmanager
def _unpacked(source: Source) -> Iterator[Readable]:
    with source.open() as stream:
        is_gzip = stream.read(2) == GZIP_BEGINS
    with source.open() as stream:
        if not is_gzip:
            yield stream
            return
        try:
            with gzip.GzipFile(fileobj=stream, mode="rb") as unpacked:  # type: ignore[call-overload]
                yield unpacked
        except DAMAGE as error:
            raise DataError(
                f"{source.label}: the gzip file is cut short or damaged ({error}). "
                "Take another copy."
            ) from None


def _shape(stream: Readable) -> tuple[int, ...]:
    magic = _up_to(stream, 4)
    if len(magic) < 4 or magic[:2] != b"\0\0":
        raise ValueError(
            f"this is no idx file: it begins with {bytes(magic)!r}, where two zero bytes "
            f"are expected. {AS_PUBLISHED}"
        )
    kind, num_dimensions = magic[2], magic[3]
    if kind != UBYTE:
        found = OTHER_TYPES.get(kind, "unknown numbers")
        raise ValueError(
            f"holds {found} (type {kind:#04x}), where unsigned bytes (0x08) are expected. "
            f"{AS_PUBLISHED}"
        )
    if not 1 <= num_dimensions <= MOST_DIMENSIONS:
        raise ValueError(
            f"declares {num_dimensions} dimensions, which no pictures or labels have. "
            f"{AS_PUBLISHED}"
        )
    sizes = _up_to(stream, 4 * num_dimensions)
    if len(sizes) < 4 * num_dimensions:
        raise ValueError("ends within its header. Take another copy.")
    return struct.unpack(f">{num_dimensions}I", sizes)


def _body(stream: Readable, shape: tuple[int, ...]) -> bytearray:
    size = math.prod(shape)
    declared = f"{' × '.join(map(str, shape))} = {size} bytes"
    if size > MOST_BYTES:
        raise ValueError(
            f"declares {declared}, more than the {MOST_BYTES // 2**30} GB that any "
            f"data set here has. {AS_PUBLISHED}"
        )
    content = _up_to(stream, size + 1)  # one more: it also lets gzip compare its checksum
    if len(content) < size:
        raise ValueError(
            f"ends after {len(content)} of {declared}. It is cut short: take another copy."
        )
    if len(content) > size:
        raise ValueError(f"goes on after the {declared} that its header declares. {AS_PUBLISHED}")
    return content


def _up_to(stream: Readable, count: int) -> bytearray:
    """As many bytes, or fewer where there are no more."""
    content = bytearray()
    while len(content) < count and (part := stream.read(min(CHUNK, count - len(content)))):
        content += part
    return content


# MNIST.


def describe(name: str) -> Dataset:
    """The description of MNIST, under the name given."""
    return Dataset(
        name=name,
        title="MNIST, 1998: 70 000 handwritten digits, 28 × 28 greys",
        downloads=tuple(
            Download(f"{ADDRESS}/{FILES[file]}.gz", published.sha256, published.md5)
            for file, published in MNIST.items()
        ),
        licence=LICENCE,
        citation=CITATION,
        kind=Images,
        read=_read_mnist,
        summary=lambda images: (
            f"{len(images.train_images)} pictures, and {len(images.test_images)} to test on"
        ),
    )


def _read_mnist(path: Path) -> Images:
    """Read the four files and refuse what is not MNIST."""
    images = _read_shaped(path, {file: published.shape for file, published in MNIST.items()})
    for file, array in images._asdict().items():
        if file.endswith("labels"):
            _check_labels(path, file, array)
        _check_contents(path, file, array)
    return images


def _check_labels(path: Path, file: str, labels: np.ndarray) -> None:
    wrong = np.flatnonzero(labels >= NUM_CLASSES)
    if len(wrong):
        raise DataError(
            f"{path}: {FILES[file]} has the label {labels[wrong[0]]} at {wrong[0]}, where 0 to "
            f"{NUM_CLASSES - 1} are expected. Is it another data set?"
        )


def _check_contents(path: Path, file: str, array: np.ndarray) -> None:
    """Other data sets, such as Fashion-MNIST, have files of the same names and shapes."""
    found = hashlib.sha256(array.data).hexdigest()
    if found != MNIST[file].contents:
        raise DataError(
            f"{path}: {FILES[file]} has the shape of MNIST's, but other contents (SHA-256 of the "
            f"array {found}, expected {MNIST[file].contents}). It is damaged or of another data "
            "set, such as Fashion-MNIST: take MNIST as published."
        )


# Black and white.


def binarize(images: ArrayLike, seed: int | None = 0, threshold: float | None = None) -> np.ndarray:
    r"""Make every pixel 0 or 1, at random by its grey, or by a threshold:

    .. math:: v_{ij} = 1 \text{ with probability } g_{ij}, \qquad\text{or}\qquad
       v_{ij} = [g_{ij} > \text{threshold}], \qquad g_{ij} \in [0, 1] \text{ the grey},

    independently for all pixels, once and for all.  The bits are the same on every platform, and
    those of a picture depend on the seed, on its place and on itself only: the first pictures come
    out equally, however many follow.

    Args:
        images: (count, …), uint8 with 255 for full ink, or floating in [0, 1].
        seed: a whole number from 0; without a threshold.
        threshold: in (0, 1); then nothing is random.

    Returns:
        (count, pixels of a picture), uint8 of 0 and 1.

    Raises:
        TypeError, ValueError: other arrays, seeds and thresholds; pictures that are binary already.

    Examples:
        >>> import numpy as np, levymc_lab.data
        >>> grey = np.array([[[0, 255], [128, 127]]], np.uint8)
        >>> levymc_lab.data.binarize(grey, seed=1)
        array([[0, 1, 1, 0]], dtype=uint8)
        >>> levymc_lab.data.binarize(grey, threshold=0.5)
        array([[0, 1, 1, 0]], dtype=uint8)

    References: [salakhutdinov2008dbn].  Departures: the law is that of its binarised
    MNIST, the bits are not.
    """
    pictures = _checked(images)
    if threshold is None:
        remedy = "Give a whole number from 0, or a threshold."
        words = np.random.PCG64(check_seed("seed", seed, remedy))
        return _of_greys(pictures, lambda greys: _uniforms(words, greys.shape) < greys)
    if not 0 < threshold < 1:
        raise ValueError(
            f"`threshold` must lie in (0, 1), got {threshold}. It is a share of full ink: 0.5, say."
        )
    return _of_greys(pictures, lambda greys: greys > threshold)


def _of_greys(pictures: np.ndarray, ink: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Apply `ink` to the greys in [0, 1] of some pictures at a time, in their order."""
    count, size = len(pictures), math.prod(pictures.shape[1:])
    flat = pictures.reshape(count, size)
    scale = FULL_INK if flat.dtype == np.uint8 else 1
    binary = np.empty((count, size), np.uint8)
    step = max(1, WORDS_AT_ONCE // size)
    for begin in range(0, count, step):
        rows = slice(begin, begin + step)
        binary[rows] = ink(flat[rows].astype(np.float64) / scale)
    return binary


def _uniforms(words: np.random.PCG64, shape: tuple[int, ...]) -> np.ndarray:
    """In [0, 1); from the words themselves, which NumPy promises to keep, unlike its floats."""
    return (words.random_raw(math.prod(shape)).reshape(shape) >> np.uint64(11)) * UNIT


def _checked(images: ArrayLike) -> np.ndarray:
    pictures = np.asarray(images)
    remedy = "Give them as read, or divided by 255."
    if pictures.dtype != np.uint8 and not jnp.issubdtype(pictures.dtype, np.floating):
        raise TypeError(f"`images` must be uint8 or floating, got {pictures.dtype}. {remedy}")
    if pictures.ndim < 2 or 0 in pictures.shape[1:]:
        raise ValueError(
            f"`images` must have the shape (count, …), got {pictures.shape}. "
            "For one picture, write images[None]."
        )
    if pictures.dtype != np.uint8:
        check_interval("images", pictures, 0.0, 1.0, includes_low=True, remedy=remedy)
    elif np.max(pictures, initial=0) == 1:
        raise ValueError(
            "`images` must be grey, got uint8 of 0 and 1 only, which are binary already. "
            "Leave them as they are, or multiply them by 255."
        )
    return pictures
