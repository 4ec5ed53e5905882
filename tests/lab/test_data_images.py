"""Binary pictures, their law and their bits; and made ones."""

import jax.numpy as jnp
import numpy as np
import pytest

from levymc_lab import data

GREYS = np.arange(256)
BITS = ["011100000001", "010100111100"]


@pytest.fixture(scope="module")
def made():
    return data.made_images(300, seed=3)


# Binary pictures.


def test_the_law_of_the_bits():
    """Each grey's share of ones, that of all, and that of equal neighbours.

    False-alarm rate 1e-6 in all, by Hoeffding's inequality with a third each.  Detects a share
    that is off by 0.033 at one grey or by 0.0018 for all together (as when one divides by 256),
    and successive pictures whose bits agree more often than in half the cases by 0.0063.
    """
    count, pixels = 50, 784
    pictures = np.broadcast_to(GREYS.astype(np.uint8)[:, None], (256, count * pixels))
    ones = data.binarize(pictures, seed=4).mean(axis=1)
    assert ones[0] == 0
    assert ones[255] == 1
    rate = 1e-6 / 3
    deviation = np.sqrt(np.log(2 * 256 / rate) / (2 * count * pixels))
    assert np.max(np.abs(ones - GREYS / 255)) < deviation
    deviation = np.sqrt(np.log(2 / rate) / (2 * 256 * count * pixels))
    assert abs(ones.mean() - 0.5) < deviation
    half = data.binarize(np.full((1001, pixels), 0.5), seed=5)
    assert abs(np.mean(half[1:] == half[:-1]) - 0.5) < np.sqrt(np.log(2 / rate) / 2e3 / pixels)


def test_the_bits_are_the_same_everywhere():
    picture = np.full((2, 3, 4), 128, np.uint8)
    assert data.binarize(picture).tolist() == data.binarize(picture, seed=0).tolist()
    assert ["".join(map(str, row)) for row in data.binarize(picture)] == BITS


def test_a_picture_depends_on_seed_and_place_only(made, monkeypatch):
    images, _ = made
    whole = data.binarize(images, seed=7)
    np.testing.assert_array_equal(data.binarize(images[:41], seed=7), whole[:41])
    changed = images.copy()
    changed[:41] = 255 - changed[:41]
    np.testing.assert_array_equal(data.binarize(changed, seed=7)[41:], whole[41:])
    monkeypatch.setattr("levymc_lab.data._binarize.WORDS_AT_ONCE", 5 * 784)
    np.testing.assert_array_equal(data.binarize(images, seed=7), whole)
    assert np.any(data.binarize(images, seed=8) != whole)


def test_shares_of_ink_give_the_same(made):
    images, _ = made
    expected = data.binarize(images, seed=2)
    np.testing.assert_array_equal(data.binarize(images / 255, seed=2), expected)
    np.testing.assert_array_equal(data.binarize(images.reshape(300, -1), seed=2), expected)
    assert expected.shape == (300, 784)
    assert expected.dtype == np.uint8
    ink = jnp.asarray([[0.0, 1.0]] * 3, jnp.float32)
    assert data.binarize(ink).tolist() == [[0, 1]] * 3
    assert data.binarize(ink.astype(jnp.bfloat16)).tolist() == [[0, 1]] * 3


def test_a_threshold():
    row = GREYS.astype(np.uint8)[None]
    np.testing.assert_array_equal(data.binarize(row, threshold=0.5)[0], GREYS > 127)
    np.testing.assert_array_equal(data.binarize(row / 255, None, 0.25)[0], GREYS > 63)
    assert data.binarize(np.array([[0.5, 0.51]]), threshold=0.5).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("images", "options", "error", "message"),
    [
        (np.zeros((2, 3), np.int64), {}, TypeError, "must be uint8 or floating, got int64"),
        (np.zeros((2, 3), bool), {}, TypeError, "must be uint8 or floating, got bool"),
        (np.zeros(3), {}, ValueError, r"shape \(count, …\), got \(3,\)"),
        (np.zeros((3, 0)), {}, ValueError, r"got \(3, 0\)"),
        (np.ones((2, 3), np.uint8), {}, ValueError, "which are binary already"),
        (np.array([[0, 1.5]]), {}, ValueError, r"lie in \[0, 1\], got 1.5 at index \(0, 1\)"),
        (np.array([[0, -0.1]]), {}, ValueError, r"got -0.1"),
        (np.array([[0, np.nan]]), {}, ValueError, r"got nan"),
        (np.zeros((2, 3)), {"seed": -1}, ValueError, "`seed` must not be negative, got -1"),
        (np.zeros((2, 3)), {"seed": None}, TypeError, "Give a whole number from 0, or a threshold"),
        (np.zeros((2, 3)), {"threshold": 0.0}, ValueError, r"must lie in \(0, 1\), got 0.0"),
        (np.zeros((2, 3)), {"threshold": 1.0}, ValueError, r"must lie in \(0, 1\), got 1.0"),
        (np.zeros((2, 3)), {"threshold": float("nan")}, ValueError, "got nan. It is a share"),
    ],
)
def test_what_cannot_be_binarised(images, options, error, message):
    with pytest.raises(error, match=message):
        data.binarize(images, **options)


def test_no_pictures_are_no_pictures():
    assert data.binarize(np.zeros((0, 28, 28), np.uint8)).shape == (0, 784)


# Made pictures.


def test_made_pictures_look_like_the_true_ones(made):
    images, labels = made
    assert images.shape == (300, 28, 28)
    assert images.dtype == labels.dtype == np.uint8
    assert set(labels.tolist()) == set(range(10))
    assert 0.1 < images.mean() / 255 < 0.16  # MNIST: 0.131
    assert 0.75 < np.mean(images == 0) < 0.87  # MNIST: 0.809
    assert np.all(images.max(axis=(1, 2)) > 150)
    edges = images[:, [0, -1]].mean() + images[:, :, [0, -1]].mean()
    assert edges < 1


def test_made_digits_can_be_told_apart(made):
    images, labels = made
    means = np.stack([images[labels == digit].mean(axis=0) for digit in range(10)])
    others, truth = data.made_images(300, seed=4)
    distances = ((others[:, None].astype(float) - means) ** 2).sum(axis=(2, 3))
    assert np.mean(distances.argmin(axis=1) == truth) > 0.8


def test_made_pictures_are_the_same_whatever_their_number(made):
    for found, expected in zip(data.made_images(40, seed=3), made, strict=True):
        np.testing.assert_array_equal(found, expected[:40])
    assert np.any(data.made_images(40, seed=4)[0] != made[0][:40])


def test_made_pictures_of_another_size():
    small, labels = data.made_images(20, seed=3, size=12)
    large, again = data.made_images(20, seed=3, size=48)
    assert small.shape == (20, 12, 12)
    np.testing.assert_array_equal(labels, again)
    shrunk = large.reshape(20, 12, 4, 12, 4).mean(axis=(2, 4))
    assert np.mean(np.abs(shrunk - small)) < 10
    for options in ({"count": 0}, {"count": 2, "size": 0}):
        with pytest.raises(ValueError, match="must be at least 1, got 0"):
            data.made_images(**options)
