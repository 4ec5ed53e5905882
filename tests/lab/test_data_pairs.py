"""Tables of users and items alone."""

import pytest

from levymc_lab.data import DataError, read_pairs


def pairs_of(tmp_path, text):
    path = tmp_path / "pairs.csv"
    path.write_text(text)
    return read_pairs(path)


@pytest.mark.parametrize(
    "text",
    [
        "ann,tea\nbob,milk\n",
        "userId,movieId\nann,tea\nbob,milk\n",
        "Item Name;rating;USER\ntea;3;ann\nmilk;;bob\n",
        '"ann"\ttea\textra\n\nbob\tmilk\t\n',
        "ann::tea\nbob::milk",
    ],
)
def test_headings_delimiters_and_further_columns(tmp_path, text):
    assert pairs_of(tmp_path, text) == (["ann", "bob"], ["tea", "milk"])


def test_an_id_is_no_heading(tmp_path):
    assert pairs_of(tmp_path, "user1,item7\n").users == ["user1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ann\n", ":1: 1 field"),
        ("ann,tea\nbob\n", ":2: 1 fields, where the first line has 2"),
        ("ann,tea\n,milk\n", ":2: there is no user"),
        ("user,item\nann,\n", ":2: there is no item"),
        ("user,item\n", "there is no pair"),
        ("", "there is no pair"),
        ('"ann,tea\n', "unexpected end of data"),
    ],
)
def test_faults_are_named_with_their_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        pairs_of(tmp_path, text)
