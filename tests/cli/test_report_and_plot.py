"""The commands ``holrr report`` and ``holrr plot``."""

from __future__ import annotations

import contextlib
import io
from types import SimpleNamespace

import numpy as np
import pytest

from holrr import load
from holrr.cli import main
from holrr.datasets import make_tensor_regression
from holrr.metrics import r2

pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def call(*words, cwd="."):
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("report")
    X, Y = make_tensor_regression(80, 6, (4, 5), rank=2, snr=2.0, random_state=0)
    names = {"X": X[:60], "Y": Y[:60], "X_new": X[60:], "Y_new": Y[60:]}
    for name, values in names.items():
        np.save(path / f"{name}.npy", values)
    fit = call("fit", "X.npy", "Y.npy", "--cv", "3", "-o", "model.holrr", cwd=path)
    assert fit.returncode == 0, fit.stderr
    one = call("fit", "X.npy", "Y.npy", "--rank", "2", "-o", "single.holrr", cwd=path)
    assert one.returncode == 0, one.stderr
    return path


def test_a_report_on_new_samples_has_the_scores_of_python(folder):
    done = call(
        "report", "model.holrr", "X_new.npy", "Y_new.npy", "-o", "new.html", "--title", "A & B",
        cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    X, Y = np.load(folder / "X_new.npy"), np.load(folder / "Y_new.npy")
    found = r2(Y, load(folder / "model.holrr").predict(X))
    assert f"R2 {found:.6g} (95 %" in done.stdout
    page = (folder / "new.html").read_text("utf-8")
    assert "<h1>A &amp; B</h1>" in page
    assert f"R2 is {found:.3f}" in page
    assert "20 samples that it assumes to be new" in page


def test_training_data_are_recognised_and_cross_validated(folder):
    done = call("report", "model.holrr", "X.npy", "Y.npy", "-o", "train.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "training data" in done.stderr
    page = (folder / "train.html").read_text("utf-8")
    assert "60 training samples by 3-fold cross-validation" in page
    assert "ridge regression" in page


def test_other_data_can_be_said_to_be_training_data(folder):
    words = ["report", "single.holrr", "X_new.npy", "Y_new.npy", "--training", "-o", "t.html"]
    done = call(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "cross-validation" in (folder / "t.html").read_text("utf-8")


@pytest.mark.parametrize("kind", ["spectrum", "loadings"])
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_plots_of_a_model_are_drawn(folder, kind, suffix):
    done = call("plot", "model.holrr", "--kind", kind, "-o", f"{kind}.{suffix}", cwd=folder)
    assert done.returncode == 0, done.stderr
    start = (folder / f"{kind}.{suffix}").read_bytes()[:60]
    assert start.startswith(b"\x89PNG") if suffix == "png" else b"<?xml" in start


@pytest.mark.parametrize("kind", ["skill", "calibration"])
def test_plots_of_data_are_drawn(folder, kind):
    words = ["plot", "model.holrr", "X_new.npy", "Y_new.npy", "--kind", kind, "-o", f"{kind}.pdf"]
    done = call(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / f"{kind}.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["plot", "model.holrr", "--kind", "skill", "-o", "a.png"], 2, "needs a file with inputs"),
        (["plot", "model.holrr", "-o", "a.jpeg"], 2, "use one of the suffixes .png, .svg, .pdf"),
        (
            ["plot", "single.holrr", "X.npy", "Y.npy", "--kind", "calibration", "-o", "a.png"],
            3,
            "needs a model with prediction intervals",
        ),
        (["report", "model.holrr", "X.npy", "-o", "a.html"], 2, "Y is missing"),
        (["report", "model.holrr", "X.npy", "Y_new.npy", "-o", "a.html"], 3, "samples"),
        (["report", "model.holrr", "X.npy", "Y.npy", "-o", "X.npy"], 2, "X.npy"),
    ],
)
def test_errors_are_one_line_with_an_exit_code(folder, words, code, message):
    done = call(*words, cwd=folder)
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (folder / "a.html").exists()
