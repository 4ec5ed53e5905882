"""The files in docs/howto do what is said there."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.lab import fake_srun

import levymc

HOWTO = Path(__file__).parents[2] / "docs" / "howto"


def blocks(page, language):
    text = (HOWTO / page).read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def finished(command, folder, **environment):
    """What a command printed; it and all that it started are ended with it."""
    variables = {**os.environ, "JAX_ENABLE_X64": "0", **environment}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            told, _ = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            raise
    assert process.returncode == 0, told
    return told


@pytest.fixture
def slurm(tmp_path):
    """The files of the page, and a function that runs a script in the place of a node."""
    programs, scripts = blocks("slurm.md", "python"), blocks("slurm.md", "sh")
    for name, content in zip(("posterior.py", "together.py"), programs, strict=True):
        (tmp_path / name).write_text(content)
    (tmp_path / "job.sh").write_text(scripts[0])
    (tmp_path / "together.sh").write_text(scripts[-1])
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, words in {"srun": f" {fake_srun.__file__}", "python": ""}.items():
        (commands / name).write_text(f'#!/bin/sh\nexec {sys.executable}{words} "$@"\n')
        (commands / name).chmod(0o755)

    def run(script, tasks):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        return finished(
            ["bash", script],
            tmp_path,
            PATH=f"{commands}{os.pathsep}{os.environ['PATH']}",
            SLURM_JOB_ID="7",
            SLURM_NTASKS=str(tasks),
            JAX_COORDINATOR_PORT=port,
        )

    return run


@pytest.mark.nightly
@pytest.mark.slow
def test_tasks_of_a_slurm_job_share_a_run(slurm, tmp_path):
    assert slurm("job.sh", 2).startswith("64 chains, mean")
    shared = levymc.load(tmp_path / "run")
    finished([sys.executable, "posterior.py", "alone"], tmp_path)
    np.testing.assert_array_equal(shared.positions, levymc.load(tmp_path / "alone").positions)
    assert slurm("job.sh", 1).startswith("64 chains, mean")  # submitted again


@pytest.mark.nightly
@pytest.mark.slow
def test_tasks_of_a_slurm_job_compute_together(slurm):
    told = [line for line in slurm("together.sh", 2).splitlines() if line.startswith("process")]
    assert sorted(told) == ["process 0 of 2: 6 chains", "process 1 of 2: 6 chains"]


@pytest.mark.nightly
@pytest.mark.slow
def test_processes_of_the_page_on_scale_share_data(tmp_path):
    """The script of the page by its own launcher, with the model of the page on minibatches."""
    model = re.findall(r"^def .*?\n(?=\n\n)", blocks("minibatches.md", "python")[0], re.M | re.S)
    (script,) = blocks("../scale.md", "python")
    small = script.replace(" 10_000,", " 20,").replace("100_000", "100")
    assert small.count(" 20,") == small.count(" 100,") == 1
    (tmp_path / "script.py").write_text("\n\n".join([*model, small, "print(run.num_draws)\n"]))
    features = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)
    np.save(tmp_path / "features.npy", features)
    np.save(tmp_path / "labels.npy", (features[:, 0] > 0).astype(np.float32))
    told = finished([sys.executable, "-m", "levymc", "launch", "-n", "2", "script.py"], tmp_path)
    assert {"[0] 20", "[1] 20"} <= set(told.splitlines())


@pytest.mark.nightly
@pytest.mark.slow
def test_pods_of_a_kubernetes_job_share_a_run(tmp_path):
    """One after the other, each with the command that the manifest has for it."""
    yaml = pytest.importorskip("yaml")
    job, service, variables = (
        list(yaml.safe_load_all(one)) for one in blocks("kubernetes.md", "yaml")
    )
    claim, program, pods = job
    assert [one["kind"] for one in (*job, *service)] == [
        "PersistentVolumeClaim",
        "ConfigMap",
        "Job",
        "Service",
    ]
    assert [one["name"] for one in variables[0]] == [
        "JAX_COORDINATOR_ADDRESS",
        "JAX_NUM_PROCESSES",
        "JAX_PROCESS_ID",
    ]
    spec = pods["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    volumes = {one["name"]: one for one in spec["volumes"]}
    assert volumes["program"]["configMap"]["name"] == program["metadata"]["name"]
    assert volumes["runs"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    for place in mounts.values():
        (tmp_path / place.lstrip("/")).mkdir()
    for name, content in program["data"].items():
        (tmp_path / mounts["program"].lstrip("/") / name).write_text(content)
    python, *words = container["command"]
    assert python == "python"
    command = [sys.executable, *(f"{tmp_path}{word}" for word in words)]
    assert finished(command, tmp_path) == "64 chains, 1000 draws each\n"
    assert finished(command, tmp_path) == "64 chains, 1000 draws each\n"
