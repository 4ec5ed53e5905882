"""Pictures with labels, in the four idx files in which MNIST is published."""

import gzip
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from levymc._workdir import atomic_bytes

from ._errors import DataError
from ._idx import idx_bytes, read_idx
from ._source import find_all

Shape = tuple[int | None, ...]  # None stands for any size

FILES = {
    "train_images": "train-images-idx3-ubyte",
    "train_labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}
ANY_SHAPES: dict[str, Shape] = {
    name: (None, None, None) if name.endswith("images") else (None,) for name in FILES
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
        >>> made = levymc_lab.data.made_images
        >>> pictures = levymc_lab.data.Images(*made(60, seed=1), *made(10, seed=2))
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
        >>> made = levymc_lab.data.made_images
        >>> pictures = levymc_lab.data.Images(*made(60, seed=1), *made(10, seed=2))
        >>> folder = levymc_lab.data.write_images(pictures, tempfile.mkdtemp())
        >>> bool((levymc_lab.data.read_images(folder).train_images == pictures.train_images).all())
        True
    """
    return read_shaped(Path(path), ANY_SHAPES)


def read_shaped(path: Path, shapes: Mapping[str, Shape]) -> Images:
    """Read pictures, having refused other shapes than these before the files are read whole."""
    images = Images(**{name: _read_file(path, name, shapes[name]) for name in FILES})
    _check_agreement(path, images)
    return images


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


def spellings(name: str) -> list[str]:
    """The names under which a file is met, the published one first."""
    official = FILES[name]
    dotted = official.replace("-idx", ".idx")
    return [f"{official}.gz", official, dotted, f"{dotted}.gz"]


def described(shape: Shape) -> str:
    """A shape in words.

    >>> described((60000, 28, 28)), described((10000,)), described((None, None, None))
    ('60000 pictures of 28 × 28', '10000 labels', 'pictures')
    """
    if len(shape) not in (1, 3):
        return f"an array of {len(shape)} dimensions"
    count = "" if shape[0] is None else f"{shape[0]} "
    if len(shape) == 1:
        return f"{count}labels"
    return f"{count}pictures" + ("" if None in shape[1:] else f" of {shape[1]} × {shape[2]}")


def _read_file(path: Path, name: str, expected: Shape) -> np.ndarray:
    def check_shape(label: str, shape: tuple[int, ...]) -> None:
        agrees = len(shape) == len(expected) and all(
            size == wanted if wanted is not None else size > 0
            for size, wanted in zip(shape, expected, strict=True)
        )
        if not agrees:
            raise DataError(
                f"{label}: holds {described(shape)}, where {described(expected)} are expected. "
                "Are files under each other's names, or of another data set?"
            )

    sources = find_all(path, spellings(name))
    if not sources:
        raise DataError(
            f"{path}: holds no {spellings(name)[0]}, nor {', '.join(spellings(name)[1:])}. "
            f"All {len(FILES)} files are needed: is it another data set?"
        )
    array = read_idx(sources[0], check_shape)
    for other in sources[1:]:
        if not np.array_equal(array, read_idx(other, check_shape)):
            raise DataError(
                f"{sources[0].label} and {other.label} differ. Remove the one that is wrong."
            )
    return array


def _check_agreement(path: Path, images: Images) -> None:
    for part in ("train", "test"):
        pictures = getattr(images, f"{part}_images")
        labels = getattr(images, f"{part}_labels")
        if len(pictures) != len(labels):
            raise DataError(
                f"{path}: {FILES[f'{part}_images']} holds {len(pictures)} pictures and "
                f"{FILES[f'{part}_labels']} {len(labels)} labels. Are they of one data set?"
            )
    train, test = images.train_images.shape[1:], images.test_images.shape[1:]
    if train != test:
        raise DataError(
            f"{path}: the pictures to learn from are {train[0]} × {train[1]}, those to test on "
            f"{test[0]} × {test[1]}. Are they of one data set?"
        )
