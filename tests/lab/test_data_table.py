"""Tables of one's own: any ids, any header, errors with the line; with ratings and without."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.toy_ratings import triples

from levymc_lab import data


@pytest.fixture
def table(tmp_path):
    def make(text, **options):
        file = tmp_path / "mine.csv"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return data.read_table(file, **options)

    return make


EXPECTED = [("ann", "tea", 4.0), ("bob", "tea", -2.5)]


@pytest.mark.parametrize(
    "text",
    [
        "ann,tea,4\nbob,tea,-2.5\n",
        "who,what,how much\nbob,tea,-2.5\nann,tea,4\n",
        "rating\tuserId\titemId\textra\n4\tann\ttea\t\n-25e-1\tbob\ttea\t\n",
        "\ufeffUser; Item; Score\r\n\r\nann; tea;4.0\r\nbob; tea;-2.5",
        '"user","item","rating"\n"ann","tea","4"\n"bob","tea","-2.5"\n',
        "ann::tea::4\nbob::tea::-2.5\n",
    ],
)
def test_headers_separators_and_quotes(table, text):
    assert triples(table(text)) == EXPECTED


def test_columns_by_name_and_by_number(table):
    text = "a,b,c,d\n1,ann,4,tea\n2,bob,-2.5,tea\n"
    assert triples(table(text, columns=("b", "d", "c"))) == EXPECTED
    assert triples(table(text, columns=(1, 3, 2))) == EXPECTED


@pytest.mark.parametrize(
    "text",
    [
        "rating,timestamp,movieId,movieTitle,userId\n4,1,tea,Tea,ann\n-2.5,2,tea,Tea,bob\n",
        '"User-ID";"ISBN";"Book-Rating"\nann;tea;4\nbob;tea;-2.5\n',
        "time,Stars,Reader,Product Name\n1,4,ann,tea\n2,-2.5,bob,tea\n",
        "item_id,rating,rating_date,user\ntea,4,2020-01-01,ann\ntea,-2.5,2020-01-02,bob\n",
    ],
)
def test_headings_decide_on_the_columns(table, text):
    assert triples(table(text)) == EXPECTED


@pytest.mark.parametrize(
    "text", ["score,place,item,age\n4,x,tea,9\n", "item,user,mood\ntea,ann,3\n"]
)
def test_headings_that_leave_the_columns_open_are_refused(table, text):
    with pytest.raises(data.DataError, match=r":1: the header .* leaves open .*--columns"):
        table(text)


def test_columns_given_as_text_may_be_numbers_or_with_a_time(table):
    text = "4,2020-01-01,tea,ann\n-2.5,12345,tea,bob\n"
    assert triples(table(text, columns=("3", "2", "0", "1"))) == EXPECTED
    with pytest.raises(data.DataError, match=r":3: time 'noon' is neither a number nor a date"):
        table(text + "1,noon,tea,eve\n", columns=(3, 2, 0, 1))
    with pytest.raises(data.DataError, match=r"no single column 'user'.*numbers from 0"):
        table(text, columns=("user", "item", "rating"))


@pytest.mark.parametrize("row", ["0,1,5", "1,0,5", "7,1,5"])
def test_numbers_of_columns_are_no_names_where_ids_are_the_same(table, row):
    """The first row was a header, and its ids the columns."""
    text = f"{row}\n0,7,3\n"
    found = table(text, columns=("0", "1", "2"))
    assert triples(found) == triples(table(text))
    assert found.num_ratings == 2
    header = table("user,2019,2020\n7,tea,3\n", columns=("user", "2019", "2020"))
    assert triples(header) == [(7, "tea", 3.0)]
    with pytest.raises(data.DataError, match=":1: 0, 1, 2 may be a header or a row"):
        table("0,1,2\n7,1,5\n", columns=("0", "1", "2"))


@pytest.mark.parametrize("row", ["ann,tea,good", "ann,tea,", "7,8,NA", "u1,i1,--", "ann,5,x"])
def test_a_bad_first_row_is_no_header(table, row):
    with pytest.raises(data.DataError, match=r"mine.csv:1: rating .* is no finite number.*header"):
        table(f"{row}\nbob,tea,3\neve,milk,4\n")


def test_ratings_outside_the_scale_are_refused(table):
    text = "user,item,rating\nann,tea,4\nbob,tea,5.5\n"
    assert table(text, scale=(1, 6)).num_ratings == 2
    with pytest.raises(data.DataError, match=r":3: rating 5.5 lies outside the scale from 1 to 5"):
        table(text, scale=(1, 5))
    with pytest.raises(data.DataError, match="`scale` must be"):
        table(text, scale=(5, 1))


def test_bad_rows_are_left_out_up_to_a_number_and_reported(table, tmp_path):
    text = b"u,i,r\nann,tea,4\nann,tea,2\nbob,tea,x\nbob,tea,-2.5\neve\n\xff,tea,3\nann,tea,9\n"
    bad = []
    assert triples(table(text, skip_bad=5, on_bad=bad.append)) == EXPECTED
    lines = [one.removeprefix(f"{tmp_path / 'mine.csv'}:").split(":")[0] for one in bad]
    assert lines == ["4", "6", "7", "3", "8"]
    with pytest.raises(data.DataError, match=r":8: user ann rates item tea again.*more than the 4"):
        table(text, skip_bad=4)
    with pytest.raises(data.DataError, match=r":4: rating 'x'"):
        table(text)


def test_rows_that_a_quotation_mark_swallowed_are_not_left_out(table):
    """As one bad row they would be gone without a word."""
    text = 'u,i,r\nann,tea,4\n"bob,tea,3\neve,tea,2\nzoe,tea,"1\n'
    with pytest.raises(data.DataError, match=r":3: .*quotation mark.*ends in line 5"):
        table(text, skip_bad=10)


def test_lines_and_rows_have_a_greatest_length(table):
    with pytest.raises(data.DataError, match=r":2: no line break in 65536 characters"):
        table("u,i,r\n" + "x" * 70_000)
    with pytest.raises(data.DataError, match=r":2: a row of more than 1000 lines"):
        table("u,i,r\n" + '"\n",' * 2000)


def test_a_pipe_is_read(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("ann,tea,4\nbob,tea,-2.5\n",))
    writer.start()
    assert triples(data.read_table(pipe)) == EXPECTED
    writer.join()


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_a_device_that_never_ends_is_refused():
    with pytest.raises(data.DataError, match="/dev/zero:1: no line break"):
        data.read_table("/dev/zero")
    with pytest.raises(data.DataError, match="/dev/zero:1: no line break"):
        data.read_pairs("/dev/zero")


def test_whole_numbers_stay_numbers_and_do_not_merge_with_others(table):
    assert triples(table("10,7,1\n9,7,2\n")) == [(9, 7, 2.0), (10, 7, 1.0)]
    ratings = table("07,1,1\n7,1,2\n")
    assert ratings.user_ids.tolist() == ["07", "7"]
    assert ratings.item_ids.dtype == np.int64


def test_text_with_line_breaks_keeps_the_line_right(table, tmp_path):
    with pytest.raises(data.DataError, match=r"mine.csv:4: rating 'x' is no finite number"):
        table('u,i,r\n"a\nb",1,3\nc,1,x\n')


def test_the_fault_of_a_row_says_how_to_do_without_it(table):
    with pytest.raises(data.DataError, match=r"no finite number.* `--skip-bad 10`.* ten bad rows"):
        table("u,i,r\n1,2,3\n1,3,x\n")
    assert table("u,i,r\n1,2,3\n1,3,x\n", skip_bad=10).num_ratings == 1


def test_more_than_256_levels_need_wider_codes(table):
    text = "".join(f"{user},1,{user / 7}\n" for user in range(300))
    ratings = table(text)
    assert ratings.codes.dtype == np.uint16
    np.testing.assert_array_equal(ratings.values, np.float32(np.arange(300) / 7))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": the file is empty"),
        ("user,item,rating\n", ": there is no rating in it"),
        ("1,2\n", ":1: 2 fields. Expected a user, an item and a rating"),
        ("u,i,r\n1,2,3\n1,3\n", ":3: 2 fields, where the first line has 3"),
        ("u,i,r\n1,2,\n", ":2: rating '' is no finite number"),
        ("u,i,r\n1,2,nan\n", ":2: rating 'nan' is no finite number"),
        ("u,i,r\n1,2,1_0\n", ":2: rating '1_0' is no finite number"),
        ("u,i,r\n1,2,inf\n", ":2: rating 'inf' is no finite number"),
        ("u,i,r\n1,2,1e39\n", ":2: rating '1e39' is no finite number"),
        ("u,i,r\n1,2,1e999\n", ":2: rating '1e999' is no finite number"),
        ("1,2,nan\n", ":1: rating 'nan' is no finite number"),
        ("u,i,r\n,2,1\n", ":2: there is no user"),
        ("u,i,r\n1, ,1\n", ":2: there is no item"),
        ("u,i,r\n1,2,1\n3,2,1\n\n1,2,5\n", ":5: user 1 rates item 2 again, after line 2"),
        ('u,i,r\n"1"x,2,1\n', ":2: "),
        ("u,i,r\n" + "x" * 300 + ",2,1\n", ":2: the user has more than 200 characters"),
        (b"u,i,r\n\xff,2,1\n", ":2: this is no text in UTF-8"),
    ],
)
def test_faults_are_told_with_file_and_line(table, tmp_path, text, message):
    with pytest.raises(data.DataError) as caught:
        table(text)
    assert str(caught.value).startswith(f"{tmp_path / 'mine.csv'}{message}")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("u", "i", "x"), "no single column 'x'. There are u, i, r"),
        ((0, 1, 3), "no column 3. There are 3"),
        ((0, 0, 1), "three different ones"),
        ((0, 1), "those of user, item and rating"),
    ],
)
def test_columns_that_are_not_there(table, columns, message):
    with pytest.raises(data.DataError, match=message):
        table("u,i,r\n1,2,3\n", columns=columns)


names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
pairs = st.tuples(names, names).map(lambda pair: tuple(name.strip() for name in pair))
ratings = st.floats(-1e6, 1e6, width=32)
tables = st.dictionaries(pairs.filter(all), ratings, min_size=1, max_size=12)


@settings(max_examples=40, deadline=None)
@given(tables)
def test_what_is_written_is_read(tmp_path_factory, rows):
    import csv

    file = tmp_path_factory.getbasetemp() / "hypothesis.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["user", "item", "rating"])
        writer.writerows((*pair, rating) for pair, rating in rows.items())
    found = triples(data.read_table(file, delimiter=","))
    expected = {(str(user), str(item), rating) for (user, item), rating in rows.items()}
    assert {(str(user), str(item), rating) for user, item, rating in found} == expected


# Users and items alone.


def pairs_of(tmp_path, text):
    path = tmp_path / "pairs.csv"
    path.write_text(text)
    return data.read_pairs(path)


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
def test_pairs_headings_delimiters_and_further_columns(tmp_path, text):
    assert pairs_of(tmp_path, text) == (["ann", "bob"], ["tea", "milk"])


@pytest.mark.parametrize(
    "text", ["produkt,kunde\n1,2\n", "title,item,user\nTea,1,2\n", "time,kunde,produkt\n5,1,2\n"]
)
def test_headings_that_tell_no_pair_are_refused(tmp_path, text):
    """As a pair they would be new, but the rows below could be known, the wrong way round."""
    with pytest.raises(data.DataError, match=r":1: the header .* leaves open .*user and item"):
        pairs_of(tmp_path, text)


def test_short_headings_of_pairs_are_those_of_ratings(tmp_path):
    assert pairs_of(tmp_path, "i,u\n1,2\n") == (["2"], ["1"])
    assert pairs_of(tmp_path, "i,u\ntea,ann\n") == (["i", "tea"], ["u", "ann"])


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
def test_faults_in_pairs_are_named_with_their_line(tmp_path, text, message):
    with pytest.raises(data.DataError, match=message):
        pairs_of(tmp_path, text)
