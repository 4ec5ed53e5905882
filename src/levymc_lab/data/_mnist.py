"""MNIST: handwritten digits."""

import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ._dataset import Dataset, Download
from ._errors import DataError
from ._images import FILES, Images, read_shaped

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


class Contents(NamedTuple):
    """What a file must hold: its shape, and the SHA-256 of the array alone, packed or not."""

    shape: tuple[int, ...]
    sha256: str


CONTENTS = {
    "train_images": Contents(
        (60_000, 28, 28), "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757"
    ),
    "train_labels": Contents(
        (60_000,), "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13"
    ),
    "test_images": Contents(
        (10_000, 28, 28), "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161"
    ),
    "test_labels": Contents(
        (10_000,), "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5"
    ),
}
# Of the gzipped files as published.
CHECKSUMS = {
    "train_images": {
        "sha256": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "md5": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    },
    "train_labels": {
        "sha256": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "md5": "d53e105ee54ea40749a09fcbcd1e9432",
    },
    "test_images": {
        "sha256": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "md5": "9fb629c4189551a2d022fa330f9573f3",
    },
    "test_labels": {
        "sha256": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        "md5": "ec29112dd5afa0611ce80d1b7f02629c",
    },
}


def describe(name: str) -> Dataset:
    """The description of MNIST, under the name given."""
    return Dataset(
        name=name,
        title="MNIST, 1998: 70 000 handwritten digits, 28 × 28 greys",
        downloads=tuple(
            Download(f"{ADDRESS}/{FILES[file]}.gz", **CHECKSUMS[file]) for file in FILES
        ),
        licence=LICENCE,
        citation=CITATION,
        kind=Images,
        read=read,
        summary=_summary,
    )


def read(path: Path) -> Images:
    """Read the four files and refuse what is not MNIST."""
    images = read_shaped(path, {file: contents.shape for file, contents in CONTENTS.items()})
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
    if found != CONTENTS[file].sha256:
        raise DataError(
            f"{path}: {FILES[file]} has the shape of MNIST's, but other contents (SHA-256 of the "
            f"array {found}, expected {CONTENTS[file].sha256}). It is damaged or of another data "
            "set, such as Fashion-MNIST: take MNIST as published."
        )


def _summary(images: Images) -> str:
    return f"{len(images.train_images)} pictures, and {len(images.test_images)} to test on"
