"""Synthetic ratings: the size asked for, skewed, structured; and synthetic pictures."""

import numpy as np
import pytest

from levymc_lab import data


@pytest.fixture(scope="module")
def ratings():
    return data.synthetic(*data.SIZES["ml-100k"], seed=1)


def test_the_sizes_are_exact_and_every_pair_is_there_once(ratings):
    assert (
        data.Size(ratings.num_users, ratings.num_items, ratings.num_ratings)
        == data.SIZES["ml-100k"]
    )
    assert np.all(np.diff(ratings.users.astype(int) * ratings.num_items + ratings.items) > 0)
    assert np.bincount(ratings.users).min() >= 20
    assert len(np.unique(ratings.items)) == ratings.num_items
    assert np.all(np.diff(ratings.item_ids) > 0)


@pytest.mark.parametrize("size", [(2, 2, 4), (30, 40, 600), (40, 30, 80), (500, 3, 1000)])
def test_small_and_crowded_sets(size):
    if 2 * size[2] > size[0] * size[1]:
        with pytest.raises(ValueError, match="`num_ratings` must lie between"):
            data.synthetic(*size)
        return
    ratings = data.synthetic(*size)
    assert (ratings.num_users, ratings.num_items, ratings.num_ratings) == size
    assert len(np.unique(ratings.items)) == ratings.num_items
    assert np.all(np.diff(ratings.users.astype(int) * ratings.num_items + ratings.items) > 0)


def test_the_seed_decides(ratings):
    again, other = (data.synthetic(*data.SIZES["ml-100k"], seed=seed) for seed in (1, 2))
    for one, same in zip(ratings, again, strict=True):
        np.testing.assert_array_equal(one, same)
    assert np.any(ratings.codes != other.codes)


def test_they_are_skewed_like_movielens(ratings):
    """The mean of a skewed count is far above its median; for equal ones they are the same."""
    for counts in (np.bincount(ratings.users), np.bincount(ratings.items)):
        assert counts.mean() > 1.5 * np.median(counts)
        assert counts.max() > 5 * counts.mean()


def test_structure_is_planted(ratings):
    """Means of 100 ratings and more would lie within 0.1 of each other by chance; these do not."""
    counts = np.bincount(ratings.items)
    means = np.bincount(ratings.items, ratings.values) / counts
    assert np.std(means[counts > 100]) > 0.3
    assert 0.8 < ratings.values.std() < 1.2


# Pictures.


@pytest.fixture(scope="module")
def pictures():
    return data.synthetic_images(300, seed=3)


def test_synthetic_pictures_look_like_the_true_ones(pictures):
    images, labels = pictures
    assert images.shape == (300, 28, 28)
    assert images.dtype == labels.dtype == np.uint8
    assert set(labels.tolist()) == set(range(10))
    assert 0.1 < images.mean() / 255 < 0.16  # MNIST: 0.131
    assert 0.75 < np.mean(images == 0) < 0.87  # MNIST: 0.809
    assert np.all(images.max(axis=(1, 2)) > 150)
    edges = images[:, [0, -1]].mean() + images[:, :, [0, -1]].mean()
    assert edges < 1


def test_synthetic_digits_can_be_told_apart(pictures):
    images, labels = pictures
    means = np.stack([images[labels == digit].mean(axis=0) for digit in range(10)])
    others, truth = data.synthetic_images(300, seed=4)
    distances = ((others[:, None].astype(float) - means) ** 2).sum(axis=(2, 3))
    assert np.mean(distances.argmin(axis=1) == truth) > 0.8


def test_synthetic_pictures_are_the_same_whatever_their_number(pictures):
    for found, expected in zip(data.synthetic_images(40, seed=3), pictures, strict=True):
        np.testing.assert_array_equal(found, expected[:40])
    assert np.any(data.synthetic_images(40, seed=4)[0] != pictures[0][:40])


def test_synthetic_pictures_of_another_size():
    small, labels = data.synthetic_images(20, seed=3, size=12)
    large, again = data.synthetic_images(20, seed=3, size=48)
    assert small.shape == (20, 12, 12)
    np.testing.assert_array_equal(labels, again)
    shrunk = large.reshape(20, 12, 4, 12, 4).mean(axis=(2, 4))
    assert np.mean(np.abs(shrunk - small)) < 10
    for options in ({"count": 0}, {"count": 2, "size": 0}):
        with pytest.raises(ValueError, match="must be at least 1, got 0"):
            data.synthetic_images(**options)
