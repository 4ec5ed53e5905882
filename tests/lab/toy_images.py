"""A tiny data set in the four files of MNIST, and how to let it pass for MNIST."""

import gzip
import hashlib
import struct

from levymc_lab import data
from levymc_lab.data import _images, _mnist

TRAIN, TEST = 12, 5


def toy_images(seed=0):
    made = data.made_images
    return data.Images(*made(TRAIN, seed=seed), *made(TEST, seed=seed + 1))


def idx(*sizes, body, begin=b"\0\0\x08"):
    """An idx file as bytes, whatever its header claims."""
    return begin + bytes([len(sizes)]) + struct.pack(f">{len(sizes)}I", *sizes) + body


def expect(monkeypatch, images):
    """Let the data set "mnist" hold these pictures."""
    contents = {
        name: _mnist.Contents(array.shape, hashlib.sha256(array.tobytes()).hexdigest())
        for name, array in images._asdict().items()
    }
    checksums = {
        name: {"sha256": hashlib.sha256(file).hexdigest()} for name, file in packed(images)
    }
    monkeypatch.setattr(_mnist, "CONTENTS", contents)
    monkeypatch.setattr(_mnist, "CHECKSUMS", checksums)


def packed(images):
    """Name and gzipped file of each array."""
    for name, array in images._asdict().items():
        yield name, gzip.compress(idx(*array.shape, body=array.tobytes()), mtime=0)


def path_of(folder, name):
    return folder / f"{_images.FILES[name]}.gz"
