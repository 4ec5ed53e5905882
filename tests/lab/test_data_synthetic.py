"""Made ratings: the size asked for, skewed, structured; and their writer."""

import numpy as np
import pytest

from levymc_lab import data


@pytest.fixture(scope="module")
def made():
    return data.synthetic(*data.SIZES["ml-100k"], seed=1)


def test_the_sizes_are_exact_and_every_pair_is_there_once(made):
    assert data.Size(made.num_users, made.num_items, made.num_ratings) == data.SIZES["ml-100k"]
    assert np.all(np.diff(made.users.astype(int) * made.num_items + made.items) > 0)
    assert np.bincount(made.users).min() >= 20
    assert len(np.unique(made.items)) == made.num_items
    assert np.all(np.diff(made.item_ids) > 0)


@pytest.mark.parametrize("size", [(2, 2, 4), (30, 40, 600), (40, 30, 80), (500, 3, 1000)])
def test_small_and_crowded_sets(size):
    if 2 * size[2] > size[0] * size[1]:
        with pytest.raises(ValueError, match="`num_ratings` must lie between"):
            data.synthetic(*size)
        return
    made = data.synthetic(*size)
    assert (made.num_users, made.num_items, made.num_ratings) == size
    assert len(np.unique(made.items)) == made.num_items
    assert np.all(np.diff(made.users.astype(int) * made.num_items + made.items) > 0)


def test_the_seed_decides(made):
    again, other = (data.synthetic(*data.SIZES["ml-100k"], seed=seed) for seed in (1, 2))
    for one, same in zip(made, again, strict=True):
        np.testing.assert_array_equal(one, same)
    assert np.any(made.codes != other.codes)


def test_they_are_skewed_like_movielens(made):
    """The mean of a skewed count is far above its median; for equal ones they are the same."""
    for counts in (np.bincount(made.users), np.bincount(made.items)):
        assert counts.mean() > 1.5 * np.median(counts)
        assert counts.max() > 5 * counts.mean()


def test_structure_is_planted(made):
    """Means of 100 ratings and more would lie within 0.1 of each other by chance; these do not."""
    counts = np.bincount(made.items)
    means = np.bincount(made.items, made.values) / counts
    assert np.std(means[counts > 100]) > 0.3
    assert 0.8 < made.values.std() < 1.2


@pytest.mark.parametrize("name", ["tab", "dat", "csv"])
def test_the_writer_writes_what_the_reader_reads(tmp_path, made, name):
    part = data.split(made, 0, (0.95, 0.05))[1]
    file = data.write(part, tmp_path / "ratings", name)
    found = data.read(file)
    np.testing.assert_array_equal(found.values, part.values)
    np.testing.assert_array_equal(found.user_ids[found.users], part.user_ids[part.users])
    np.testing.assert_array_equal(found.item_ids[found.items], part.item_ids[part.items])
    assert [one.name for one in tmp_path.iterdir()] == ["ratings"]


@pytest.mark.parametrize(
    ("name", "line"), [("tab", "1\t7\t4\t"), ("dat", "1::7::4::"), ("csv", "1,7,4.0,")]
)
def test_the_text_is_that_of_the_official_files(tmp_path, name, line):
    one = data.Ratings(
        np.zeros(1, np.uint32),
        np.zeros(1, np.uint16),
        np.zeros(1, np.uint8),
        np.array([4.0], np.float32),
        np.array([1]),
        np.array([7]),
    )
    text = data.write(one, tmp_path / "ratings", name).read_text()
    assert text.splitlines()[-1].startswith(line)
    assert text.startswith("userId,movieId,rating,timestamp\n") == (name == "csv")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"levels": np.float32(np.arange(10))}, "`levels` must be half stars"),
        ({"levels": np.float32(np.arange(10) / 3)}, "`levels` must be half stars"),
        ({"user_ids": np.array(["a"])}, "`user_ids` must be whole numbers"),
    ],
)
def test_what_the_formats_cannot_hold_is_refused(tmp_path, made, change, message):
    with pytest.raises(ValueError, match=message):
        data.write(made._replace(**change), tmp_path / "ratings")
    with pytest.raises(ValueError, match="`format` must be one of tab, dat, csv"):
        data.write(made, tmp_path / "ratings", "xml")
    assert not list(tmp_path.iterdir())
