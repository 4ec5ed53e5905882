"""`levymc factorize`: from a table to predictions, stopped, resumed and refused."""

import csv
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from levymc import algorithms, models
from levymc_lab import data, factorize
from levymc_lab.cli import app
from levymc_lab.factorize import _model, _run

STEPS = 400
OPTIONS = ("--steps", STEPS, "--rank", 3)
SWEEPS = ("--steps", 100, "--rank", 3, "--method", "gibbs")
OUTPUTS = ("predictions.csv", "factors.npz", "factors-README.md")


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


class Fit(NamedTuple):
    """A fit that nothing interrupted: its folder, what the command showed, and was told.

    killed: its folder as kill -9 would have left it after 200 steps, with some draws.
    """

    out: Path
    stdout: str
    reports: list[factorize.Progress]
    killed: Path


def watched_fit(folder, table, options, kill_at):
    reports = []
    out, killed, whole_run = folder / "new", folder / "killed", factorize.run

    def watch(progress):
        reports.append(progress)
        if progress.phase == "sampling" and progress.done == kill_at:
            shutil.copytree(out, killed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_model, "COMMIT_SECONDS", 0.0)
        patch.setattr(factorize, "run", lambda job, _: whole_run(job, watch))
        result = levymc("factorize", table, "--out", out, *options)
    assert result.exit_code == 0, result.output
    return Fit(out, result.stdout, reports, killed)


@pytest.fixture(scope="module")
def fit(table, tmp_path_factory):
    """By stochastic gradients."""
    return watched_fit(tmp_path_factory.mktemp("fit"), table, OPTIONS, 200)


@pytest.fixture(scope="module")
def sweeps(table, tmp_path_factory):
    """By the Gibbs sampler."""
    return watched_fit(tmp_path_factory.mktemp("sweeps"), table, SWEEPS, 40)


@pytest.mark.parametrize("name", ["fit", "sweeps"])
def test_a_fit_says_how_good_it_is(name, request):
    """Seeds are fixed.  A fit that learnt nothing would have the error of the mean rating."""
    fit = request.getfixturevalue(name)
    out = fit.out
    assert "RMSE on 150 held-out ratings" in fit.stdout
    scores = manifest_of(out)["scores"]
    assert scores["rmse"] < 0.75 * scores["rmse_of_the_mean_rating"]
    assert 0.75 < scores["interval_coverage"] <= 1  # 0.9 of 150, give or take six deviations
    assert manifest_of(out)["num_divergent_steps"] == 0
    assert sorted(file.name for file in out.iterdir()) == sorted([*OUTPUTS, "manifest.json"])


def test_the_method_and_its_progress_are_told(table, sweeps):
    settings = factorize.Settings(rank=3, steps=100, method="gibbs")
    sampler = _model.sampler_of(factorize.prepare(table, sweeps.out, settings), 0.5)
    assert isinstance(sampler, models.GibbsFactorization)
    manifest = manifest_of(sweeps.out)
    assert manifest["identity"]["method"] == "gibbs"
    assert manifest["num_draws"] == 80
    assert "batch_size" not in manifest["sampler"]
    assert "Gibbs, 100 steps" in sweeps.stdout
    seen = [(progress.phase, progress.done) for progress in sweeps.reports[5:]]
    assert seen == [("burn-in" if k < 21 else "sampling", k) for k in range(4, 101, 4)]
    assert sweeps.reports[-1].rmse == pytest.approx(manifest["scores"]["rmse"], rel=1e-6)


def test_sweeps_stopped_by_a_kill_end_with_the_same_bytes(table, sweeps, tmp_path, monkeypatch):
    out, whole_run, seen = shutil.copytree(sweeps.killed, tmp_path / "fit"), factorize.run, []
    assert not (out / "predictions.csv").exists()
    monkeypatch.setattr(
        factorize, "run", lambda job, _: whole_run(job, lambda progress: seen.append(progress.done))
    )
    assert levymc("factorize", table, "--out", out, *SWEEPS).exit_code == 0
    assert seen[0] == 40
    assert bytes_of(out) == bytes_of(sweeps.out)
    refused = levymc("factorize", table, "--out", out, *SWEEPS[:-2])
    assert refused.exit_code == 2
    assert "its method is gibbs, not sg" in refused.stderr


def test_predictions_have_the_ids_and_ratings_of_the_table(fit, table):
    given = {tuple(line.split(";")[:2]): line.split(";")[2] for line in table.read_text().split()}
    rows = rows_of(fit.out)
    assert len(rows) == 150
    for row in rows:
        assert given[row["user"], row["item"]] == row["rating"]
        assert 0.5 <= float(row["low"]) <= float(row["mean"]) <= float(row["high"]) <= 5
    errors = [float(row["mean"]) - float(row["rating"]) for row in rows]
    rmse = manifest_of(fit.out)["scores"]["rmse"]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(rmse, rel=1e-4)


def arrays_of(folder):
    with np.load(folder / "factors.npz", allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def test_factors_predict_as_predictions_do(fit):
    """By the formula of the README, and nothing else than the file."""
    held = arrays_of(fit.out)
    assert held["users"].shape == (32, 80, 3)
    assert held["user_ids"].tolist() == sorted(held["user_ids"].tolist())
    assert held["user_counts"].sum() == held["item_counts"].sum() == 1350
    rows = rows_of(fit.out)
    users = np.searchsorted(held["user_ids"], [row["user"] for row in rows])
    items = np.searchsorted(held["item_ids"], [int(row["item"]) for row in rows])
    draws = np.sum(held["users"][:, users] * held["items"][:, items], axis=2)
    draws = held["center"] + draws + held["user_biases"][:, users] + held["item_biases"][:, items]
    predicted = np.clip(draws.mean(axis=0), *held["scale"])
    known = [row["basis"] == "known" for row in rows]
    assert sum(known) > 140
    means = np.array([float(row["mean"]) for row in rows])
    np.testing.assert_allclose(predicted[known], means[known], rtol=1e-5)
    half = 1.6448536 * np.sqrt(draws.var(axis=0) + held["noise"] ** 2)
    highs = np.array([float(row["high"]) for row in rows])
    expected = np.minimum(draws.mean(axis=0) + half, held["scale"][1])
    np.testing.assert_allclose(highs[known], expected[known], rtol=1e-5)


def test_the_readme_names_every_array(fit):
    text = (fit.out / "factors-README.md").read_text()
    assert all(f"`{name}`" in text for name in arrays_of(fit.out))
    assert "32 draws" in text


def test_predict_gives_what_the_fit_gave(fit, tmp_path, monkeypatch):
    """Byte for byte, by the command, the standard input and the function; nothing is fitted."""
    monkeypatch.setattr(factorize, "run", None)
    expected = (fit.out / "predictions.csv").read_bytes()
    given = levymc("predict", fit.out, fit.out / "predictions.csv")
    assert given.exit_code == 0, given.output
    assert given.stdout_bytes == expected
    written = levymc("predict", fit.out, fit.out / "predictions.csv", "--out", tmp_path / "p.csv")
    assert written.exit_code == 0
    assert (tmp_path / "p.csv").read_bytes() == expected
    known = rows_of(fit.out)[0]
    pairs = data.Pairs([known["user"], "nobody"], [known["item"]] * 2)
    found = factorize.predict(fit.out, pairs)
    assert found.bases == ["known", "new user"]
    assert np.all((found.low <= found.mean) & (found.mean <= found.high))


def test_predictions_leave_links_pipes_and_encodings_as_they_are(fit, tmp_path):
    """A file took the place of the pipe, which would have been /dev/null as well."""
    pairs, pipe, link = tmp_path / "pairs.csv", tmp_path / "pipe", tmp_path / "link.csv"
    pairs.write_text("user,item\np1,té\n")
    os.mkfifo(pipe)
    link.symlink_to("p.csv")
    command = [sys.executable, "-m", "levymc_lab", "predict", str(fit.out), str(pairs)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    shown = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    assert "p1,té," in shown.decode()
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    for out in (pipe, link):
        assert levymc("predict", fit.out, pairs, "--out", out).exit_code == 0
    reader.join(60)
    assert found == [shown]
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert (tmp_path / "p.csv").read_bytes() == shown


@pytest.mark.parametrize(
    ("offset", "line"),
    [
        (0, "a,b,3.01235,1.01235,5.01235,4.1,known"),
        (1e6, "a,b,1000003.0123,1000001.0123,1000005.0123,1000004.1,known"),
    ],
)
def test_predictions_tell_large_ratings_apart(offset, line):
    """All of 1000003 ± 2 was 1e+06."""
    mean = np.array([3.0123456, 2.5]) + offset
    ratings = np.array([4.1, np.nan], np.float32) + np.float32(offset)
    columns = (["a", "b"], ["b", "c"], mean, mean - 2, mean + 2, ratings, ["known"] * 2)
    assert factorize.Predictions(*columns).to_csv().decode().splitlines()[1] == line


def test_recommendations_are_the_highest_predictions_of_what_is_not_rated(fit, table):
    fitted = factorize.load(fit.out)
    user = max(fitted.user_ids.tolist(), key=lambda one: fitted.user_counts[fitted.user_ids == one])
    found = factorize.recommend(fitted, user, top=5)
    lines = [line.split(";") for line in table.read_text().splitlines()]
    rated = {item for name, item, _ in lines if name == user}
    every = {item for _, item, _ in lines[1:]}
    others = factorize.predict(
        fitted, data.Pairs([user] * len(every - rated), sorted(every - rated))
    )
    known = {
        item: mean
        for item, mean, basis in zip(others.items, others.mean, others.bases, strict=True)
        if basis == "known"
    }
    best = sorted(known.values(), reverse=True)
    assert [known[item] for item in found.items] == best[:5]
    assert rated.isdisjoint(found.items)
    np.testing.assert_array_equal(found.mean, best[:5])
    shown = levymc("recommend", fit.out, "--user", user, "--top", 3, "--rated")
    assert shown.exit_code == 0, shown.output
    assert len(shown.stdout.splitlines()) == 4
    assert shown.stdout.splitlines()[0] == "user,item,mean,low,high,rating,basis"


def test_what_no_fit_can_answer_is_refused(fit, tmp_path):
    unknown = levymc("recommend", fit.out, "--user", "nobody")
    assert unknown.exit_code == 2
    assert "user 'nobody'" in unknown.stderr
    for folder, message in ((fit.killed, "not finished"), (tmp_path, "holds no fit")):
        result = levymc("recommend", folder, "--user", "p1")
        assert result.exit_code == 3
        assert message in result.stderr
    broken = shutil.copytree(fit.out, tmp_path / "broken")
    (broken / "factors.npz").write_bytes((fit.out / "factors.npz").read_bytes()[:1000])
    result = levymc("recommend", broken, "--user", "p1")
    assert result.exit_code == 3
    assert "is damaged" in result.stderr


def test_a_chain_whose_draws_are_gone_is_named_with_a_remedy(table, fit, tmp_path):
    out = shutil.copytree(fit.killed, tmp_path / "fit")
    sorted((out / "draws").iterdir())[0].unlink()
    result = levymc("factorize", table, "--out", out, *OPTIONS)
    assert result.exit_code == 3
    assert "000000090.npz is missing" in result.stderr
    assert f"Remove {out / 'chain.zarr'}" in result.stderr


def test_draws_are_fewer_where_they_take_much_room():
    settings = factorize.Settings()
    assert settings.draws(1000) == range(810, 4001, 10)
    assert len(settings.draws(10_000)) == 107  # every third
    assert len(settings.draws(10**7)) == 40
    sweeps = factorize.Settings(method="gibbs")
    assert sweeps.draws(9746) == range(39, 191)  # of MovieLens 1M, all
    assert len(sweeps.draws(10**7)) == 38  # every fourth


def test_progress_has_the_phase_and_the_running_error(fit):
    seen = [(progress.phase, progress.done, progress.total) for progress in fit.reports]
    steps = range(20, STEPS + 1, 20)
    phases = ["burn-in" if done < 90 else "sampling" for done in steps]  # its first draw
    chain = [(phase, done, STEPS) for phase, done in zip(phases, steps, strict=True)]
    assert seen == [*(("noise", done, 4) for done in range(5)), *chain]
    errors, scores = [progress.rmse for progress in fit.reports], manifest_of(fit.out)["scores"]
    assert errors[:5] == [None] * 5
    assert all(error < 2 * scores["rmse_of_the_mean_rating"] for error in errors[5:])
    assert errors[-1] == pytest.approx(scores["rmse"], rel=1e-6)


def test_a_run_stopped_twice_ends_with_the_same_bytes(table, fit, tmp_path, monkeypatch):
    """Once by kill -9, with what was committed then; once by Ctrl-C."""
    out, whole_run, seen = shutil.copytree(fit.killed, tmp_path / "fit"), factorize.run, []
    assert not (out / "predictions.csv").exists()

    def stop(progress):
        seen.append(progress.done)
        if progress.done >= 300:
            raise KeyboardInterrupt

    monkeypatch.setattr(factorize, "run", lambda job, _: whole_run(job, stop))
    result = levymc("factorize", table, "--out", out, *OPTIONS)
    assert result.exit_code == 130
    assert seen[0] == 200  # neither the noise nor the first steps were made again
    assert manifest_of(out)["status"] == "stopped"

    monkeypatch.setattr(factorize, "run", whole_run)
    command = result.stderr.splitlines()[-1]
    assert levymc(*shlex.split(command)[1:]).exit_code == 0
    assert bytes_of(out) == bytes_of(fit.out)
    assert not (out / "chain.zarr").exists()


def test_outputs_of_a_chain_that_is_complete_are_written(table, fit, tmp_path, monkeypatch):
    """A process that ended between its last step and the outputs."""
    out = shutil.copytree(fit.killed, tmp_path / "fit")
    job = factorize.prepare(table, out, factorize.Settings(rank=3, steps=STEPS))
    with monkeypatch.context() as patch:
        patch.setattr(_run, "write_outputs", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            factorize.run(job)
    seen = []
    assert factorize.run(job, seen.append)["status"] == "finished"
    assert seen == fit.reports[-1:]
    assert bytes_of(out) == bytes_of(fit.out)


def test_a_full_disk_is_told_with_what_to_do(table, fit, tmp_path, monkeypatch):
    """The store's own remedy, levymc.resume, would go on without keeping draws."""
    out, write_draw = shutil.copytree(fit.killed, tmp_path / "fit"), _run.write_draw

    def write(job, step, position):
        if step == 300:
            reason = OSError(28, "No space left on device")
            raise OSError(28, "No space left on device: go on with levymc.resume") from reason
        write_draw(job, step, position)

    monkeypatch.setattr(_run, "write_draw", write)
    result = levymc("factorize", table, "--out", out, *OPTIONS)
    assert result.exit_code == 3
    assert f"No space left on device. What was finished is safe in {out};" in result.stderr
    monkeypatch.undo()
    assert levymc("factorize", table, "--out", out, *OPTIONS).exit_code == 0
    assert bytes_of(out) == bytes_of(fit.out)


@pytest.mark.parametrize("name", ["draws", "chain.zarr", "factors-README.md"])
def test_what_is_not_ours_is_not_removed(table, tmp_path, name):
    """Folders named draws were, and all that was in them."""
    kept = tmp_path / name / "mine.csv"
    kept.parent.mkdir()
    kept.write_text("1,2\n")
    result = levymc("factorize", table, "--out", tmp_path, *OPTIONS)
    assert result.exit_code == 2
    assert f"holds {name} of something else" in result.stderr
    assert kept.exists()


def test_a_damaged_chain_is_named_with_a_remedy(table, fit, tmp_path):
    out = shutil.copytree(fit.killed, tmp_path / "fit")
    (state,) = (out / "chain.zarr/levymc").glob("state-*.npz")
    state.write_bytes(state.read_bytes()[:100])
    result = levymc("factorize", table, "--out", out, *OPTIONS)
    assert result.exit_code == 3
    assert "chain.zarr is damaged: levymc/state-" in result.stderr
    assert f"Or remove {out / 'chain.zarr'}" in result.stderr


def test_a_finished_run_is_shown_again_and_left_alone(table, fit):
    out = fit.out
    before = {file: file.stat().st_mtime_ns for file in out.iterdir()}
    again = levymc("factorize", table, "--out", out, *OPTIONS)
    assert again.stdout == fit.stdout
    assert {file: file.stat().st_mtime_ns for file in out.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seed", 1], "its seed is 0, not 1"),
        (["--rank", 4], "its rank is 3, not 4"),
        (["--noise", 0.5], "its noise is None, not 0.5"),
    ],
)
def test_a_folder_of_another_run_is_refused(table, fit, options, message):
    before = bytes_of(fit.out)
    result = levymc("factorize", table, "--out", fit.out, *OPTIONS, *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "--force" in result.stderr
    assert bytes_of(fit.out) == before


def test_a_folder_of_other_data_or_files_is_refused(table, fit, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(table.read_text().rpartition("\np")[0] + "\n")
    result = levymc("factorize", other, "--out", fit.out, *OPTIONS)
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


@pytest.fixture
def prepared(monkeypatch):
    """Runs the command up to the fit; gives its result and the job."""
    jobs = []

    def stop(job, _):
        jobs.append(job)
        raise KeyboardInterrupt

    monkeypatch.setattr(factorize, "run", stop)

    def prepare(*arguments, **options):
        words = [str(argument) for argument in arguments]
        result = CliRunner().invoke(app, ["factorize", *words], **options)
        return result, jobs[-1] if jobs else None

    return prepare


def test_columns_scale_and_bad_rows_are_options(prepared, tmp_path):
    path, out = tmp_path / "books.csv", tmp_path / "fit"
    rows = [f"{k % 5 + 1},x,{k % 7},b{k}" for k in range(40)]
    path.write_text("\n".join(["mark,note,by,about", *rows, "6,x,1,b1", "3,x,1", ""]))
    options = ("--out", out, "--columns", "by,about,mark", "--scale", "1,5")
    result, job = prepared(path, *options)
    assert result.exit_code == 2
    assert f"{path}:42: rating 6 lies outside the scale from 1 to 5" in result.stderr
    result, job = prepared(path, *options, "--skip-bad", 2)
    assert result.exit_code == 130
    assert f"2 bad rows were left out:\n  {path}:42: rating 6" in result.stderr
    assert f"  {path}:43: 3 fields" in result.stderr
    assert "--columns by,about,mark --scale 1,5 --skip-bad 2" in result.stderr
    assert len(job.bad) == 2
    assert job.table.whole.num_ratings == 40
    assert job.scale.ends == (1, 5)
    assert prepared(path, *options[:2], "--scale", "one")[0].exit_code == 2


def test_the_scale_of_few_different_ratings_is_theirs(prepared, table, tmp_path):
    assert prepared(table, "--out", tmp_path / "a")[1].scale.ends == (0.5, 5)
    unbounded = prepared(table, "--out", tmp_path / "a", "--scale", "none")[1]
    assert unbounded.scale.ends == (-np.inf, np.inf)
    many = tmp_path / "many.csv"
    many.write_text("".join(f"u{k},i{k % 9},{k % 30}\n" for k in range(90)))
    assert prepared(many, "--out", tmp_path / "a")[1].scale.ends == (-np.inf, np.inf)


def test_the_ends_of_a_scale_are_rounded_as_ratings_are(prepared, tmp_path):
    """No interval up to 0.6 held a rating of 0.6, which in single precision lies above."""
    path = tmp_path / "shares.csv"
    path.write_text("".join(f"u{k},i{k % 9},{k % 7 / 10}\n" for k in range(90)))
    job = prepared(path, "--out", tmp_path / "a", "--scale", "0,0.6")[1]
    assert job.scale.ends == (0, job.table.whole.levels[-1])
    assert job.scale.ends != (0, 0.6)


def test_a_file_of_movielens_has_its_scale(prepared, tmp_path):
    """It is read as such or refused, not by columns as a table of one's own."""
    path = tmp_path / "ratings.csv"
    lines = [f"{k},{k % 3},{k % 5 + 1},7" for k in range(40)]
    path.write_text("\n".join(["userId,movieId,rating,timestamp", *lines, "9,9,50,7"]) + "\n")
    result, _ = prepared(path, "--out", tmp_path / "fit")
    assert result.exit_code == 2
    assert f"{path}:42: rating 50 lies outside the scale from 0.5 to 5" in result.stderr
    assert "--scale" in result.stderr
    assert prepared(path, "--out", tmp_path / "fit", "--scale", "1,100")[0].exit_code == 130


def test_the_standard_input_is_read():
    """In a process of its own, as the reader takes the file descriptor."""
    source = "import levymc_lab.data as data; print(data.read_table('-').users)"
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, input=b"a,b,1\nc,d,2\n", capture_output=True, check=True)
    assert done.stdout == b"[0 1]\n"


def test_the_default_is_what_our_results_recommend():
    """Lévy noise does not pay on ratings, nor an exact posterior: README, and docs/ledger.md."""
    assert factorize.Settings()[:2] == (10, 2)
    assert factorize.Settings().method == "sg"


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
        ("u,i,1\n", ["--method", "als"], "one of sg, gibbs, got 'als'"),
        ("u,i,1\n", ["--method", "gibbs", "--alpha", 1.5], "must be 2 with the method gibbs"),
    ],
)
def test_what_cannot_be_fitted_ends_with_2(tmp_path, content, options, message):
    path = tmp_path / "few.csv"
    path.write_text(content)
    result = levymc("factorize", path, "--out", tmp_path / "fit", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "fit").exists()


def test_pairs_that_are_new_get_the_prior_and_are_marked(table, tmp_path, fit):
    """A new pair's mean is the mean rating exactly, and every unknown widens the interval."""
    known = rows_of(fit.out)[0]
    pairs = tmp_path / "pairs.csv"
    named = [("nobody", "nothing"), (known["user"], "nothing"), ("nobody", known["item"])]
    named.append((known["user"], known["item"]))
    pairs.write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item in named))
    out = tmp_path / "fit"
    options = (*OPTIONS, "--noise", 0.5, "--scale", "none", "--predict", pairs)
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
    again = levymc("predict", out, pairs)
    assert again.stdout_bytes == (out / "predictions.csv").read_bytes()


class Diverging:
    """Each of its steps diverges."""

    def init(self, position):
        return algorithms.State(position, jnp.int32(0))

    def step(self, key, state, data):
        zero = jnp.zeros(())
        return state, algorithms.Info(zero, zero, jnp.bool_(True), zero, zero)


def test_every_divergent_step_is_counted():
    counting = _model.Counting(Diverging())
    state = counting.init({"users": jnp.ones(2)})
    for _ in range(3):
        state, info = counting.step(jax.random.key(0), state, None)
    assert int(state.num_divergent) == 3
    assert bool(info.is_divergent)
    np.testing.assert_array_equal(state.position["users"], [1, 1])


def test_it_works_without_a_compiler_and_starts_anew_by_force(tmp_path, monkeypatch):
    monkeypatch.setenv("LEVYMC_NATIVE", "jax")
    table = tmp_path / "few.csv"
    table.write_text("".join(f"u{k % 5},i{k % 4},{k % 3}\n" for k in range(20)))
    (tmp_path / "predictions.csv").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine too")
    options = ("--steps", 50, "--rank", 1, "--noise", 0.5, "--force")
    result = levymc("factorize", table, "--out", tmp_path, *options)
    assert result.exit_code == 0, result.output
    assert manifest_of(tmp_path)["identity"]["backend"] == "jax"
    assert manifest_of(tmp_path)["num_draws"] == 4
    assert len(rows_of(tmp_path)) == 2
    assert (tmp_path / "notes.txt").read_text() == "mine too"
