"""The command line of the experiments: results, messages, exit codes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from paper import meteo
from paper.command import main

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "paper"]
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONWARNINGS": "default",
    "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
}


def call(*words, cwd):
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=ENVIRONMENT,
        timeout=120,
        check=False,
    )


def test_help_names_the_experiments(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for words in ("synthetic", "images", "runtime", "meteo", "all", "--resume", "report.html"):
        assert words in out


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ([], 2, "required"),
        (["everything"], 2, "everything"),
        (["images", "--quick", "--full"], 2, "not allowed"),
        (["images", "--jobs", "0"], 2, "--jobs"),
        (["images", "--seed", "-1"], 2, "--seed"),
        (["runtime", "--image", "a.png"], 2, "--image"),
        (["images", "--image", "none.png"], 3, "none.png does not exist"),
        (["meteo", "--data-dir", "nowhere"], 3, "nowhere does not exist"),
        (["runtime", "--out", "a_file/sub"], 4, "cannot be created"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_error_is_one_line_and_an_exit_code(tmp_path, monkeypatch, capfd, words, code, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a_file").touch()
    assert main(words) == code
    error = capfd.readouterr().err
    assert told in error
    assert len(error.strip().splitlines()) == 1


def test_without_network_the_weather_is_missing_and_the_exit_code_5(tmp_path, monkeypatch, capfd):
    def offline(data_home):
        raise OSError("could not download: no network")

    monkeypatch.setattr(meteo, "load_weather", offline)
    words = ["--data-dir", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(["meteo", *words]) == 5
    assert "no network" in capfd.readouterr().err


def test_an_array_is_accepted_as_a_picture(tmp_path):
    from matplotlib.image import imsave

    imsave(tmp_path / "mine.png", np.random.default_rng(0).random((9, 12, 3)))
    done = call("images", "--quick", "--image", "mine.png", "--out", "r", "--jobs", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "report.html" in done.stdout
    assert "Warning" not in done.stderr
    page = (tmp_path / "r" / "report.html").read_text()
    assert "mine" in page


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_control_c_keeps_the_finished_units_and_resume_uses_them(tmp_path):
    units = tmp_path / "r" / "parts" / "synthetic.jsonl"
    process = subprocess.Popen(
        [*COMMAND, "synthetic", "--full", "--jobs", "1", "--out", str(tmp_path / "r")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        # A runner in the background has its children ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        deadline = time.monotonic() + 90
        while not (units.exists() and len(units.read_text().splitlines()) > 2):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert error.strip().splitlines()[-1].endswith("run the same command with --resume")
    assert "Traceback" not in error
    lines = units.read_text().splitlines()
    assert all(json.loads(line) for line in lines)
    other = call("synthetic", "--quick", "--resume", "--out", tmp_path / "r", cwd=tmp_path)
    assert other.returncode == 3
    assert len(other.stderr.strip().splitlines()) == 1
    assert "other settings" in other.stderr
