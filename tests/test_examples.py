"""Every example runs as a user would run it, from an empty folder."""

import json
import os
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
CLUSTER = ROOT / "examples" / "core" / "train_on_a_cluster.py"
SYSTEMS = ("arc", "trace", "causal")
TIMEOUT = 300


def start(path, folder, *words, **environment):
    """The example in a process of its own; what it warns of is an error."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(path), *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"JAX_PLATFORMS": "cpu"} | environment,
    )


def test_every_system_has_three_short_examples():
    for system in SYSTEMS:
        short = [path for path in EXAMPLES if path.parent.name == system]
        assert len(short) >= 3, system
        for path in short:
            assert len(path.read_text().splitlines()) < 80, path.name


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(path, tmp_path):
    with start(path, tmp_path) as process:
        out, error = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, error
    assert out.strip(), "an example shows something"


def lines_of(folder):
    text = (folder / "metrics.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def finish(*processes):
    for process in processes:
        _, error = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, error


@pytest.mark.slow
def test_two_tasks_of_slurm_learn_what_two_devices_do(tmp_path):
    """JAX reads Slurm's variables; the page on clusters has the batch script."""
    words = ("--updates", "5", "--out")
    alone = start(CLUSTER, tmp_path, *words, "one", JAX_NUM_CPU_DEVICES="2")
    tasks = [
        start(
            CLUSTER,
            tmp_path,
            *(*words, "two"),
            SLURM_JOB_ID=str(os.getpid()),  # the port of the first task follows from it
            SLURM_STEP_NODELIST="127.0.0.1",
            SLURM_NTASKS="2",
            SLURM_PROCID=str(number),
            SLURM_LOCALID=str(number),
            JAX_NUM_CPU_DEVICES="1",
        )
        for number in range(2)
    ]
    finish(alone, *tasks)
    one, two = lines_of(tmp_path / "one"), lines_of(tmp_path / "two")
    assert len(one) == 5
    assert one == two


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "arc train AGI1-train --max-side 3 --envs 4 --steps 4 --updates 2",
        "causal train surrogate --dim 8 --layers 1 --batch 2 --steps 2 --variables 3",
    ],
    ids=["arc", "causal"],
)
def test_training_commands_on_two_hosts_learn_what_two_devices_do(tmp_path, words):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
    run = partial(start, "-m", tmp_path, "jaxrig", *words.split(), "--out")
    finish(run("one", JAX_NUM_CPU_DEVICES="2"))
    hosts = [("--hosts", f"{address},{number}/2") for number in range(2)]
    finish(*(run("two", *each, JAX_NUM_CPU_DEVICES="1") for each in hosts))
    one, two = lines_of(tmp_path / "one"), lines_of(tmp_path / "two")
    assert one
    assert one == two
