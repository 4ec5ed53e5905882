"""`levymc factorize`: from a table to predictions, stopped, resumed and refused."""

import csv
import json
import shlex

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from levymc_lab import data, factorize
from levymc_lab.cli import app
from levymc_lab.factorize import _prepare, _run
from levymc_lab.factorize._model import Carry
from levymc_lab.framework import ResultsError

STEPS = 400
OUTPUTS = ("predictions.csv", "factors.npz")


def levymc(*arguments):
    """Run the command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def rows_of(folder):
    with (folder / "predictions.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def manifest_of(folder):
    return json.loads((folder / "manifest.json").read_text())


def bytes_of(folder):
    return [(folder / name).read_bytes() for name in OUTPUTS]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Ratings with text for users, most of whose variance is planted structure."""
    made = data.synthetic(80, 40, 1500, seed=3, rank=2, noise=0.3)
    lines = ["person;item;score"] + [
        f"p{user};{item};{value:g}"
        for user, item, value in zip(
            made.user_ids[made.users], made.item_ids[made.items], made.values, strict=True
        )
    ]
    path = tmp_path_factory.mktemp("table") / "mine.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def finished(table, tmp_path_factory):
    """A fit that nothing interrupted."""
    out = tmp_path_factory.mktemp("fit") / "new"
    result = levymc("factorize", table, "--out", out, "--steps", STEPS, "--rank", 3)
    assert result.exit_code == 0, result.output
    return out, result


def test_a_fit_says_how_good_it_is(finished):
    """Seeds are fixed.  A fit that learnt nothing would have the error of the mean rating."""
    out, result = finished
    assert "RMSE on 150 held-out ratings" in result.stdout
    scores = manifest_of(out)["scores"]
    assert scores["rmse"] < 0.75 * scores["rmse_of_the_mean_rating"]
    assert 0.75 < scores["interval_coverage"] <= 1  # 0.9 of 150, give or take six deviations
    assert manifest_of(out)["num_divergent_steps"] == 0
    assert sorted(file.name for file in out.iterdir()) == sorted([*OUTPUTS, "manifest.json"])


def test_predictions_have_the_ids_and_ratings_of_the_table(finished, table):
    given = {tuple(line.split(";")[:2]): line.split(";")[2] for line in table.read_text().split()}
    rows = rows_of(finished[0])
    assert len(rows) == 150
    for row in rows:
        assert given[row["user"], row["item"]] == row["rating"]
        assert float(row["low"]) < float(row["mean"]) < float(row["high"])
    errors = [float(row["mean"]) - float(row["rating"]) for row in rows]
    rmse = manifest_of(finished[0])["scores"]["rmse"]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(rmse, rel=1e-4)


def test_factors_are_a_draw_in_units_of_ratings(finished, table):
    with np.load(finished[0] / "factors.npz", allow_pickle=False) as archive:
        draw = {name: archive[name] for name in archive.files}
    assert draw["users"].shape == (80, 3)
    assert draw["user_ids"].tolist() == sorted(draw["user_ids"].tolist())
    assert draw["user_counts"].sum() == draw["item_counts"].sum() == 1350
    product = draw["center"] + draw["users"] @ draw["items"].T
    predicted = product + draw["user_biases"][:, None] + draw["item_biases"]
    ratings = data.read_table(table)
    errors = predicted[ratings.users, ratings.items] - ratings.values
    assert np.sqrt(np.mean(errors**2)) < 0.75 * ratings.values.std()


class Stopper:
    """Raises `error` when the chain has made so many steps."""

    def __init__(self, at, error):
        self.at, self.error, self.seen = at, error, []

    def __call__(self, progress):
        self.seen.append(progress.done)
        if progress.phase != "noise" and progress.done >= self.at:
            raise self.error


def test_a_run_stopped_twice_ends_with_the_same_bytes(table, finished, tmp_path, monkeypatch):
    """Once as by kill -9, with what the last checkpoint has; once by Ctrl-C."""
    monkeypatch.setattr(_run, "PROGRESS_SECONDS", 0.0)
    out = tmp_path / "fit"
    job = factorize.prepare(table, out, factorize.Settings(rank=3, steps=STEPS))
    with monkeypatch.context() as patch:
        patch.setattr(_run, "CHECKPOINT_SECONDS", 0.0)
        patch.setattr(_run, "save_point", first_only(_run.save_point))
        with pytest.raises(MemoryError):
            factorize.run(job, Stopper(60, MemoryError()))
    assert (out / "checkpoint.npz").exists()
    assert not (out / "predictions.csv").exists()

    whole_run, stopper = factorize.run, Stopper(300, KeyboardInterrupt())
    monkeypatch.setattr(factorize, "run", lambda job, _: whole_run(job, stopper))
    result = levymc("factorize", table, "--out", out, "--steps", STEPS, "--rank", 3)
    assert result.exit_code == 130
    assert stopper.seen[0] == 2 * _run.CHUNK  # the noise and the first chunk were not made again
    assert manifest_of(out)["status"] == "stopped"

    monkeypatch.setattr(factorize, "run", whole_run)
    command = result.stderr.splitlines()[-1]
    assert levymc(*shlex.split(command)[1:]).exit_code == 0
    assert bytes_of(out) == bytes_of(finished[0])


def first_only(save):
    """So that the steps after the first checkpoint are lost."""
    calls = []
    return lambda *arguments: calls or calls.append(save(*arguments))


def test_a_finished_run_is_shown_again_and_left_alone(table, finished):
    out, result = finished
    before = {file: file.stat().st_mtime_ns for file in out.iterdir()}
    again = levymc("factorize", table, "--out", out, "--steps", STEPS, "--rank", 3)
    assert again.stdout == result.stdout
    assert {file: file.stat().st_mtime_ns for file in out.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seed", 1], "its seed is 0, not 1"),
        (["--rank", 4], "its rank is 3, not 4"),
        (["--noise", 0.5], "its noise is None, not 0.5"),
    ],
)
def test_a_folder_of_another_run_is_refused(table, finished, options, message):
    before = bytes_of(finished[0])
    result = levymc(
        "factorize", table, "--out", finished[0], "--steps", STEPS, "--rank", 3, *options
    )
    assert result.exit_code == 2
    assert message in result.stderr
    assert "--force" in result.stderr
    assert bytes_of(finished[0]) == before


def test_a_folder_of_other_data_or_files_is_refused(table, finished, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(table.read_text().rpartition("\np")[0] + "\n")
    result = levymc("factorize", other, "--out", finished[0], "--steps", STEPS, "--rank", 3)
    assert result.exit_code == 2
    assert "its ratings is" in result.stderr

    (tmp_path / "predictions.csv").write_text("mine")
    result = levymc("factorize", table, "--out", tmp_path)
    assert result.exit_code == 2
    assert "predictions.csv of something else" in result.stderr
    (tmp_path / "manifest.json").write_text('{"name": "toy"}')
    assert "another kind" in levymc("factorize", table, "--out", tmp_path).stderr
    (tmp_path / "manifest.json").write_text("{")
    assert levymc("factorize", table, "--out", tmp_path).exit_code == 3
    assert (tmp_path / "predictions.csv").read_text() == "mine"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ann,tea", ":31: 2 fields, where the first line has 3."),
        ("ann,tea,good", ":31: rating 'good' is no finite number."),
        (",tea,3", ":31: there is no user."),
        ("u1,i1,3", ":31: user u1 rates item i1 again, after line 3."),
    ],
)
def test_a_malformed_table_ends_with_2_and_its_line(tmp_path, line, message):
    rows = [f"u{k},i{k},{k % 5}" for k in range(29)]
    path = tmp_path / "bad.csv"
    path.write_text("\n".join(["user,item,rating", *rows, line, "u1,i2,3"]) + "\n")
    result = levymc("factorize", path, "--out", tmp_path / "fit")
    assert result.exit_code == 2
    assert result.stderr == f"levymc: {path}{message}" + result.stderr.partition(message)[2]
    assert not (tmp_path / "fit").exists()


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("u,i,1\n" * 1, [], "1 ratings are too few"),
        ("".join(f"u{k},i{k},2\n" for k in range(30)), [], "all ratings are 2"),
        ("".join(f"u{k},i{k},{k}\n" for k in range(300)), [], "Round them"),
        ("", [], "the file is empty"),
        ("u,i,1\n", ["--alpha", 1.0], "alpha"),
        ("u,i,1\n", ["--noise", 0], "noise"),
        ("u,i,1\n", ["--rank", 62], "rank"),
        ("u,i,1\n", ["--steps", 10], "steps"),
    ],
)
def test_what_cannot_be_fitted_ends_with_2(tmp_path, content, options, message):
    path = tmp_path / "few.csv"
    path.write_text(content)
    result = levymc("factorize", path, "--out", tmp_path / "fit", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "fit").exists()


def test_pairs_that_are_new_get_the_prior_and_are_marked(table, tmp_path, finished):
    """A new pair's mean is the mean rating exactly, and every unknown widens the interval."""
    known = rows_of(finished[0])[0]
    pairs = tmp_path / "pairs.csv"
    named = [("nobody", "nothing"), (known["user"], "nothing"), ("nobody", known["item"])]
    named.append((known["user"], known["item"]))
    pairs.write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item in named))
    out = tmp_path / "fit"
    options = ("--steps", STEPS, "--rank", 3, "--noise", 0.5, "--predict", pairs)
    result = levymc("factorize", table, "--out", out, *options)
    assert result.exit_code == 0, result.output
    both, item, user, neither = rows = rows_of(out)
    assert [(row["user"], row["item"]) for row in rows] == named
    assert [row["basis"] for row in rows] == ["new both", "new item", "new user", "known"]
    assert [row["rating"] for row in rows] == ["", "", "", known["rating"]]
    manifest = manifest_of(out)
    assert float(both["mean"]) == pytest.approx(manifest["center"], rel=1e-5)
    z = 1.6448536
    expected = z * np.sqrt(0.25 + manifest["spread"] ** 2 * (3 + 2))  # rank, and two biases
    assert float(both["high"]) - float(both["mean"]) == pytest.approx(expected, rel=1e-4)
    widths = [float(row["high"]) - float(row["low"]) for row in (neither, user, item, both)]
    assert widths[0] < min(widths[1:3])
    assert manifest["num_predictions_for_new"] == 3
    assert manifest["scores"]["num_held_out"] == 150

    result = levymc("factorize", table, "--out", out, *options[:-2])
    assert "its pairs is" in result.stderr


def test_it_works_without_a_compiler_and_starts_anew_by_force(table, tmp_path, monkeypatch):
    monkeypatch.setenv("LEVYMC_NATIVE", "jax")
    (tmp_path / "predictions.csv").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine too")
    options = ("--steps", 100, "--rank", 2, "--noise", 0.5, "--force")
    result = levymc("factorize", table, "--out", tmp_path, *options)
    assert result.exit_code == 0, result.output
    assert manifest_of(tmp_path)["identity"]["backend"] == "jax"
    assert len(rows_of(tmp_path)) == 150
    assert (tmp_path / "notes.txt").read_text() == "mine too"


def test_a_checkpoint_is_read_as_it_was_or_named(tmp_path):
    folder = _prepare.Folder(tmp_path)
    carry = Carry({"x": jnp.arange(3.0)}, (), (), jnp.int32(4))
    _run.save_point(folder, _run.Point(carry, 7))
    point = _run.load_point(folder, carry._replace(state={"x": jnp.zeros(3)}))
    assert point.done == 7
    np.testing.assert_array_equal(point.carry.state["x"], [0, 1, 2])
    with pytest.raises(ResultsError, match="out of place"):
        _run.load_point(folder, carry._replace(state={"x": jnp.zeros(2)}))
    folder.checkpoint.write_bytes(folder.checkpoint.read_bytes()[:100])
    with pytest.raises(ResultsError, match=r"checkpoint.npz is damaged .* Remove it"):
        _run.load_point(folder, carry)
