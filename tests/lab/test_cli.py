"""The `levymc` command: what it prints, how it ends, and that nothing is lost."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.lab.toy_experiment import contents, fill_disk
from typer.testing import CliRunner

from levymc import _workdir
from levymc_lab import framework
from levymc_lab.cli import _doctor, app, main
from levymc_lab.framework import _registry, _results

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def with_toy(monkeypatch):
    monkeypatch.setitem(_registry.MODULES, "toy", "tests.lab.toy_experiment")
    monkeypatch.setenv("COLUMNS", "120")


def levymc(*arguments):
    """Run the command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def run_toy(out, *options):
    return levymc("run", "toy", "--jobs", 0, "--out", out, *options)


def test_help_shows_commands_and_examples():
    result = levymc("--help")
    assert result.exit_code == 0
    for word in ("list", "run", "doctor", "demo", "version", "levymc run all --profile paper"):
        assert word in result.stdout
    assert "130" in levymc("run", "--help").stdout


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("run stable-l", ["stable-laws", "stable-like"]),
        ("run to", ["toy"]),
        ("run toy al", ["all"]),
        ("data import ml-1", ["ml-100k", "ml-10m", "ml-1m"]),
        ("data fetch mn", ["mnist"]),
    ],
)
def test_the_tab_key_completes_names(typed, completed):
    """By what bash asks the command."""
    words = f"levymc {typed}".split()
    asked = {
        "_LEVYMC_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    told = CliRunner().invoke(app, [], prog_name="levymc", env=asked)
    assert sorted(told.stdout.split()) == sorted(completed)


def test_list_names_paper_item_question_and_profiles():
    result = levymc("list")
    assert result.exit_code == 0
    for word in ("stable-laws", "Figure 1", "Do the draws follow", "quick, paper"):
        assert word in result.stdout


def test_list_wraps_where_the_terminal_is_narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = levymc("list").stdout.splitlines()
    assert max(map(cell_len, lines)) <= 60
    words = " ".join(lines).split()
    assert "…" not in "".join(words)  # no word is cut
    for name in framework.names():
        assert {name, *framework.get(name).question.split()} <= set(words)


@pytest.mark.parametrize("command", ["doctor", "run", "data list"])
def test_tables_wrap_where_the_terminal_is_narrow(tmp_path, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(_workdir, "git_state", lambda: {"revision": "c0ffee", "dirty": False})
    shown = run_toy(tmp_path) if command == "run" else levymc(*command.split())
    lines = [line for line in shown.stdout.splitlines() if str(tmp_path) not in line]
    assert max(map(cell_len, lines)) <= 60
    assert "…" not in shown.stdout


def test_version():
    assert levymc("version").stdout.startswith("levymc ")
    assert levymc("--version").stdout == levymc("version").stdout
    lines = dict(line.split(maxsplit=1) for line in levymc("version", "-v").stdout.splitlines())
    assert {"levymc", "jax", "jaxlib", "numpy", "python", "devices"} <= lines.keys()


def test_doctor_shows_what_is_here_and_what_is_missing(monkeypatch):
    told = levymc("doctor")
    assert told.exit_code == 0
    for word in ("jaxlib", "64-bit types", "processors", "kernels", "numpyro", "arviz"):
        assert word in told.stdout
    monkeypatch.setattr(_doctor, "_is_installed", lambda package: package != "arviz")
    assert "missing arviz: pip install 'levymc[arviz]'" in levymc("doctor").stdout


def test_doctor_follows_extras_that_contain_extras(monkeypatch):
    monkeypatch.setattr(_doctor, "_is_installed", lambda package: package != "blackjax")
    found = _doctor.extras()
    for extra in ("auto", "numpyro", "pymc"):
        assert found[extra].startswith(f"missing blackjax: pip install 'levymc[{extra}]'")
    assert "missing" not in found["arviz"]
    lines = [
        "jax>=0.5",
        "one>=1; extra == 'a'",
        "levymc[a,c]; extra == 'b'",
        "two[more]; python_version > '3' and extra == \"b\"",
        "levymc[b]; extra == 'c'",
    ]
    needed = {"a": ["one"], "b": ["two", "one"], "c": ["two", "one"]}
    assert {name: sorted(all_of_it) for name, all_of_it in _doctor._needed(lines).items()} == {
        name: sorted(all_of_it) for name, all_of_it in needed.items()
    }


def test_a_run_shows_checks_verdict_and_folder(tmp_path):
    result = run_toy(tmp_path)
    assert result.exit_code == 0
    for word in ("largest mean", "≤ 10", "pass", "Measured here. It is a toy.", "/toy"):
        assert word in result.stdout
    assert (tmp_path / "toy/figures/draws.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "stable-laww"], "Did you mean stable-laws"),
        (["run", "figure-2"], "Use the experiment's name: double-well-histograms."),
        (["run", "Fig. 3"], "Use the experiment's name: double-well-truncation."),
        (["run", "corollary1"], "name: weak-convergence or euler-convergence."),
        (["run", "figure-7"], "There are: stable-laws"),
        (["run", "toy", "zzz"], "There are: stable-laws"),
        (["run", "toy", "--profile", "papr"], "Did you mean paper?"),
        (["run", "toy", "--seed", "-1"], "--seed"),
        (["run", "toy", "--jobs", "-1"], "--jobs"),
        (["run"], "Missing argument"),
        (["rnu"], "No such command"),
        (["report", "no-such-folder"], "does not exist"),
    ],
)
def test_bad_input_ends_with_2(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = levymc(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(tmp_path.iterdir())


def test_another_run_ends_with_2_before_anything_is_run(tmp_path):
    run_toy(tmp_path)
    result = levymc("run", "stable-laws", "toy", "--seed", 1, "--out", tmp_path)
    assert result.exit_code == 2
    assert "its seed is 0, not 1" in result.stderr
    assert "--force" in result.stderr
    assert not (tmp_path / "stable-laws").exists()
    assert run_toy(tmp_path, "--seed", 1, "--force").exit_code == 0


@pytest.mark.parametrize("dirty", [False, True])
def test_changes_that_are_not_committed_are_told_at_the_start(tmp_path, monkeypatch, dirty):
    state = {"revision": "c0ffee" * 7, "dirty": dirty}
    monkeypatch.setattr(_workdir, "git_state", lambda: state)
    told = "The source has changes since revision c0ffeec0ffee that are not committed"
    first, *_ = run_toy(tmp_path).stdout.splitlines()
    assert first.startswith(told) == dirty


def test_a_failed_check_ends_with_1(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY", "miss")
    result = run_toy(tmp_path)
    assert result.exit_code == 1
    assert "FAIL" in result.stdout
    assert "largest mean: because" in result.stdout
    assert run_toy(tmp_path).exit_code == 1  # and still does when there is nothing left to do


def one_sentence(result) -> str:
    """The message of a run that failed without a traceback."""
    assert "Traceback" not in result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("levymc: ")
    return line


def test_io_problems_end_with_3_and_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    result = run_toy(tmp_path / "file")
    assert result.exit_code == 3
    assert "0 of 4 cells are safe" in one_sentence(result)

    with monkeypatch.context() as patch:
        fill_disk(patch, 6)
        result = run_toy(tmp_path)
    assert result.exit_code == 3
    assert "No space left on device. 2 of 4 cells are safe" in one_sentence(result)
    assert run_toy(tmp_path).exit_code == 0

    before = contents(tmp_path)
    (tmp_path / "toy/manifest.json").write_text("{")
    result = run_toy(tmp_path)
    assert result.exit_code == 3
    assert "manifest.json is broken" in one_sentence(result)
    assert contents(tmp_path) == before


def test_a_fault_ends_with_4_and_a_traceback(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY", "crash")
    result = run_toy(tmp_path)
    assert result.exit_code == 4
    assert "ValueError: a fault in a cell" in result.stderr
    assert "Traceback" in result.stderr
    monkeypatch.delenv("TOY")
    assert run_toy(tmp_path).exit_code == 0


def test_an_experiment_that_fails_does_not_keep_others_from_being_run(tmp_path, monkeypatch):
    monkeypatch.setitem(_registry.MODULES, "sound", "tests.lab.sound_experiment")
    monkeypatch.setenv("TOY", "crash")
    command = ("run", "toy", "sound", "--jobs", 0, "--out", tmp_path)
    result = levymc(*command)
    assert result.exit_code == 4
    assert "ValueError: a fault in a cell" in result.stderr
    assert result.stderr.splitlines()[-1] == "levymc: not finished: toy; see above."
    assert framework.load(tmp_path / "sound").manifest["status"] == "finished"
    page = (tmp_path / "index.html").read_text("utf-8")
    assert "so far: 2 of 4 cells" in page
    monkeypatch.delenv("TOY")
    assert levymc(*command).exit_code == 0
    assert "so far" not in (tmp_path / "index.html").read_text("utf-8")


def test_an_interrupt_ends_all_experiments(tmp_path, monkeypatch):
    monkeypatch.setitem(_registry.MODULES, "sound", "tests.lab.sound_experiment")
    monkeypatch.setenv("TOY", "interrupt")
    assert levymc("run", "toy", "sound", "--jobs", 0, "--out", tmp_path).exit_code == 130
    assert not (tmp_path / "sound").exists()


def test_an_interrupt_ends_with_130_and_says_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY", "interrupt")
    result = run_toy(tmp_path, "--force")
    assert result.exit_code == 130
    command = f"levymc run toy --profile quick --out {tmp_path} --seed 0 --jobs 0"
    assert result.stderr.splitlines()[-1].strip() == command
    page = tmp_path / "index.html"
    assert f"Page: {page}" in result.stdout
    assert "so far: 2 of 4 cells" in page.read_text("utf-8")
    monkeypatch.delenv("TOY")
    assert levymc(*command.split()[1:]).exit_code == 0
    assert "so far" not in page.read_text("utf-8")


def test_a_page_that_cannot_be_written_does_not_hide_the_interrupt(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY", "interrupt")
    (tmp_path / "index.html").mkdir()
    result = run_toy(tmp_path)
    assert result.exit_code == 130
    assert "Page:" not in result.stdout
    assert "Go on with" in result.stderr


class Interrupting:
    """A module on which Ctrl-C is pressed while it is imported."""

    def __getattr__(self, name):
        raise KeyboardInterrupt


def test_an_interrupt_during_imports_is_quiet(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "levymc_lab.report", Interrupting())
    monkeypatch.setattr(sys, "argv", ["levymc", "report", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == ""


STUMBLING = """
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
except KeyboardInterrupt:
    raise ImportError("Encountered an error while initializing the extension.")
"""


@pytest.fixture
def heeds_ctrl_c():
    """Tests that run in the background would pass on that they ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
@pytest.mark.parametrize("command", [["-m", "levymc"], ["-m", "levymc_lab"]])
def test_ctrl_c_while_jax_is_imported_is_quiet(tmp_path, command):
    """JAX's own modules make another error of it."""
    (tmp_path / "jax.py").write_text(STUMBLING)
    paths = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, *command, "list"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "")


def start(out: Path, asleep: Path) -> subprocess.Popen:
    """The command in a process of its own, which sleeps in cell-2."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.lab.toy_experiment", "run", "toy", "--out", str(out)],
        cwd=ROOT,
        env={**os.environ, "TOY": f"sleep:{asleep}"},
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C goes to all processes of a terminal's group
    )


def wait_until(condition, seconds=240):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_gone(pid: int) -> bool:
    """Ended, even if nobody has collected it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize(
    "sign", [pytest.param(signal.SIGINT, marks=pytest.mark.nightly), signal.SIGKILL]
)
def test_a_stopped_process_leaves_no_other_behind_and_goes_on(tmp_path, sign):
    asleep = tmp_path / "asleep"
    process = start(tmp_path / "out", asleep)
    try:
        wait_until(lambda: asleep.exists() and asleep.read_text())
        if sign == signal.SIGINT:
            os.killpg(process.pid, sign)
        else:
            process.kill()
        _, message = process.communicate(timeout=240)
        wait_until(lambda: is_gone(int(asleep.read_text())))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    if sign == signal.SIGINT:
        assert process.returncode == 130
        assert b"Traceback" not in message
        assert b"levymc run toy --profile quick" in message
    cells = _results.Folder(tmp_path / "out/toy").cells
    assert sorted(file.name for file in cells.iterdir()) == ["cell-0.npz", "cell-1.npz"]
    page = tmp_path / "out/index.html"
    assert page.exists() == (sign == signal.SIGINT)
    assert levymc("report", tmp_path / "out").exit_code == 0
    assert "so far: 2 of 4 cells" in page.read_text("utf-8")
    assert run_toy(tmp_path / "out").exit_code == 0


def test_python_dash_m_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "levymc", "version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == levymc("version").stdout


def test_a_locale_without_greek_letters_will_do():
    """A traceback ended it, with the code of a check that failed."""
    command = [sys.executable, "-m", "levymc_lab", "--help"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert r"L\xe9vy-driven" in done.stdout


def test_importing_the_command_loads_nothing_slow():
    slow = {"jax", "numpy", "scipy", "matplotlib", "rich", "jinja2"}
    source = f"import sys, levymc_lab.cli; print(sorted({slow} & sys.modules.keys()))"
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
