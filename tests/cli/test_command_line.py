"""The command line as a subprocess: results, messages, exit codes."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

import holrr
from commands import fails
from holrr import HOLRRCV
from holrr.cli import main
from holrr.datasets import make_tensor_regression
from holrr.metrics import rmse

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "default"}


def call(*words, cwd=None, **environment):
    return subprocess.run(
        [sys.executable, "-m", "holrr", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**ENVIRONMENT, **environment},
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Arrays in every format."""
    folder = tmp_path_factory.mktemp("arrays")
    X, Y = make_tensor_regression(40, 5, (3, 4), rank=(2, 2, 2), snr=3, random_state=0)
    np.save(folder / "X.npy", X)
    np.save(folder / "Y.npy", Y)
    np.savez(folder / "both.npz", X=X, Y=Y)
    np.savetxt(folder / "X.csv", X, delimiter=",", header="a,b,c,d,e", comments="", fmt="%.17g")
    np.savetxt(folder / "Y.csv", Y.reshape(40, -1), delimiter=",", fmt="%.17g")
    return folder


# ---------------------------------------------------------------- help


def test_help_shows_commands_examples_and_exit_codes():
    done = call("--help")
    assert done.returncode == 0
    for words in ("fit", "predict", "info", "demo", "exit codes", "examples"):
        assert words in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 88


def test_version_is_printed_and_help_is_shown_without_arguments(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"holrr {holrr.__version__}"
    assert main([]) == 0
    assert "examples" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nonsense"], "nonsense"),
        (["fit"], "required"),
        (["fit", "X", "Y", "-o", "m", "--rank", "0"], "rank"),
        (["fit", "X", "Y", "-o", "m", "--model", "magic"], "magic"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(capfd, words, told):
    assert main(words) == 2
    error = capfd.readouterr().err
    assert told in error
    assert len(error.strip().splitlines()) == 1


# ---------------------------------------------------------------- fit, info, predict


@pytest.mark.filterwarnings("ignore:The best penalty")
def test_fit_info_and_predict_agree_with_the_library(folder, tmp_path, capsys):
    X, Y = np.load(folder / "X.npy"), np.load(folder / "Y.npy")
    model, predicted = str(tmp_path / "m.holrr"), str(tmp_path / "P.npy")
    fitted = call("fit", folder / "X.npy", folder / "Y.npy", "-o", model)
    assert fitted.returncode == 0, fitted.stderr
    assert main(["predict", model, str(folder / "X.npy"), "-o", predicted]) == 0
    capsys.readouterr()
    assert main(["info", model]) == 0
    info = capsys.readouterr().out
    by_hand = holrr.HOLRRCV(cv=5).fit(X, Y)
    np.testing.assert_allclose(np.load(tmp_path / "P.npy"), by_hand.predict(X), atol=1e-10)
    assert f"{np.sqrt(by_hand.held_out_mse_):.6g} (5-fold cross-validation)" in info
    for words in ("HOLRR", "3 x 4", " x ".join(map(str, by_hand.rank_)), "of 60", "certificate"):
        assert words in info
    # What is mixed stands in the last line of what Python shows.
    assert repr(by_hand).splitlines()[-1].removeprefix("# ") in info
    assert re.search(rf"^alpha +{by_hand.best_params_['alpha']:g}$", info, flags=re.MULTILINE)
    assert info in fitted.stdout


def test_formats_are_interchangeable(folder, tmp_path):
    sources = [
        (folder / "X.npy", folder / "Y.npy"),
        (f"{folder / 'both.npz'}:X", f"{folder / 'both.npz'}:Y"),
        (folder / "X.csv", folder / "Y.csv", "--output-shape", "3,4"),
    ]
    predictions = []
    for number, source in enumerate(sources):
        model, csv = str(tmp_path / f"{number}.holrr"), str(tmp_path / f"{number}.csv")
        words = [*map(str, source), "--rank", "2", "--alpha", "0.1"]
        assert main(["fit", *words, "-o", model]) == 0
        assert main(["predict", model, str(folder / "X.csv"), "-o", csv]) == 0
        predictions.append(np.loadtxt(csv, delimiter=","))
    by_hand = holrr.HOLRR(2, 0.1).fit(np.load(folder / "X.npy"), np.load(folder / "Y.npy"))
    expected = by_hand.predict(np.load(folder / "X.npy")).reshape(40, -1)
    for predicted in predictions:
        np.testing.assert_allclose(predicted, expected, atol=1e-12)


def test_parquet_files_are_written_and_read_without_loss(folder, tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    X, Y = np.load(folder / "X.npy"), np.load(folder / "Y.npy")
    x, y, model, out = (str(tmp_path / n) for n in ("x.parquet", "y.parquet", "m", "p.parquet"))
    pandas.DataFrame(X, columns=list("abcde")).to_parquet(x)
    pandas.DataFrame(Y.reshape(40, -1)).rename(columns=str).to_parquet(y)
    fit = ["fit", x, y, "--output-shape", "3,4", "--rank", "2", "--alpha", "0.1", "-o", model]
    assert main(fit) == 0
    assert main(["predict", model, x, "-o", out]) == 0
    expected = holrr.HOLRR(2, 0.1).fit(X, Y).predict(X).reshape(40, -1)
    np.testing.assert_allclose(pandas.read_parquet(out).to_numpy(), expected, atol=1e-12)


@pytest.mark.parametrize(
    "words",
    [
        ["--model", "lrr", "--rank", "2", "--cv", "3"],
        ["--model", "rls"],
        ["--model", "kernel-holrr", "--gamma", "0.1", "--cv", "3"],
        ["--model", "kernel-rls", "--kernel", "laplacian", "--gamma", "0.1", "--alpha", "1"],
        ["--model", "trace-norm", "--alpha", "1,10", "--cv", "3", "--no-intercept"],
        ["--model", "mlmt-nc", "--rank", "2", "--alpha", "0.1"],
        ["--rank", "0.9,2,2"],
    ],
    ids=lambda words: " ".join(words),
)
def test_every_kind_of_model_is_saved_and_predicts(folder, tmp_path, words):
    """In this process, since each call of its own would take a second to start."""
    model, output = str(tmp_path / "m.holrr"), str(tmp_path / "P.npz")
    arrays = [str(folder / "X.npy"), str(folder / "Y.npy")]
    assert main(["fit", *arrays, *words, "-o", model]) == 0
    assert main(["info", model]) == 0
    assert main(["predict", model, arrays[0], "-o", output]) == 0
    with np.load(output) as archive:
        assert archive["Y"].shape == (40, 3, 4)


# ---------------------------------------------------------------- bad input


@pytest.fixture(scope="module")
def bad(folder):
    """What can be wrong with files."""
    Y = np.load(folder / "Y.npy")
    np.save(folder / "short.npy", Y[:30])
    Y[3, 1, 2] = np.nan
    np.save(folder / "nan.npy", Y)
    (folder / "junk.npy").write_text("junk")
    (folder / "words.csv").write_text("a,b\n1,2\n3,four\n")
    (folder / "empty.csv").write_text("")
    (folder / "junk.holrr").write_text("junk")
    np.save(folder / "objects.npy", np.array([{}, None]), allow_pickle=True)
    return folder


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["fit", "none.npy", "Y.npy", "-o", "m"], 3, "none.npy does not exist"),
        (["fit", ".", "Y.npy", "-o", "m"], 3, "is not a regular file"),
        (["fit", "X.npy", "junk.npy", "-o", "m"], 3, "junk.npy cannot be read"),
        (["fit", "X.npy", "objects.npy", "-o", "m"], 3, "objects.npy cannot be read"),
        (["fit", "X.npy", "empty.csv", "-o", "m"], 3, "empty"),
        (["fit", "words.csv", "Y.npy", "-o", "m"], 3, "line 3, column 2"),
        (["fit", "X.npy", "short.npy", "-o", "m"], 3, "same number of samples"),
        (["fit", "X.npy", "nan.npy", "-o", "m"], 3, "NaN at index (3, 1, 2)"),
        (["fit", "X.npy", "Y.npy", "--input-shape", "2,9", "-o", "m"], 3, "has 18 cells"),
        (["fit", "X.npy", "Y.npy", "--input-rank", "2,2", "-o", "m"], 3, "at least two modes"),
        (["fit", "X.npy", "Y.npy", "--input-rank", "0", "-o", "m"], 2, "a rank"),
        (["fit", "both.npz", "Y.npy", "-o", "m"], 3, "NAME is one of X, Y"),
        (["fit", "both.npz:Z", "Y.npy", "-o", "m"], 3, "no array 'Z'"),
        (["fit", "X.txt", "Y.npy", "-o", "m"], 3, "does not exist"),
        (["fit", "junk.holrr", "Y.npy", "-o", "m"], 2, "unknown format"),
        (["fit", "X.npy", "Y.npy", "--rank", "9,2,2", "-o", "m"], 3, "rank[0]"),
        (["fit", "X.npy", "Y.npy", "--model", "rls", "--rank", "2", "-o", "m"], 2, "no rank"),
        (["fit", "X.npy", "Y.npy", "--kernel", "rbf", "-o", "m"], 2, "no kernel"),
        (["fit", "X.npy", "Y.npy", "--cv", "1", "-o", "m"], 2, "--cv"),
        (["fit", "X.npy", "Y.npy", "--rank", "2", "--alpha", "1,2", "-o", "m"], 2, "--cv"),
        (["fit", "X.npy", "Y.npy", "--rank", "0.5", "--cv", "3", "-o", "m"], 2, "share"),
        (["fit", "X.npy", "Y.csv", "--output-shape", "5,5", "-o", "m"], 3, "has 25 entries"),
        (["fit", "X.npy", "Y.npy", "-o", "nowhere/m"], 4, "nowhere does not exist"),
        (["fit", "X.npy", "Y.npy", "-o", "."], 4, "is a folder"),
        (["info", "junk.holrr"], 3, "no file of holrr.save"),
        (["info", "none.holrr"], 3, "does not exist"),
        (["predict", "junk.holrr", "X.npy", "-o", "P.npy"], 3, "no file of holrr.save"),
        (["predict", "m.holrr", "X.npy", "-o", "nowhere/P.npy"], 4, "nowhere"),
        (["demo", "--out", "X.npy"], 4, "cannot be created"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_clear_line(bad, capfd, monkeypatch, words, code, told):
    monkeypatch.chdir(bad)
    assert main(words) == code
    error = capfd.readouterr().err
    assert told in error
    assert len(error.strip().splitlines()) == 1
    assert not (bad / "m").exists()


def test_debug_adds_the_traceback(folder, capfd):
    words = ["fit", str(folder / "X.npy"), str(folder / "none.npy"), "-o", str(folder / "m")]
    assert "none.npy does not exist" in fails(capfd, 3, *words)
    assert main([*words, "--debug"]) == 3
    assert "Traceback" in capfd.readouterr().err


# ---------------------------------------------------------------- demo


def test_demo_says_where_its_files_are(tmp_path, capfd, monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    environment = tmp_path / "some folder" / "bin"
    environment.mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "some folder")
    monkeypatch.setattr(sys, "executable", str(environment / "python"))
    monkeypatch.setenv("PATH", str(environment))  # without a command holrr
    assert main(["demo", "--out", str(tmp_path / "d")]) == 0
    said = capfd.readouterr()
    assert said.err == ""
    for name in ("reconstruction.png", "reconstruction.svg", "report.html", "table.txt"):
        assert str(tmp_path / "d" / name) in said.out
        assert (tmp_path / "d" / name).stat().st_size > 0
    assert said.out.endswith("\nNext: bin/python -m holrr fit X.npy Y.npy -o model.holrr\n")
    assert "RMSE on 500 new samples" in said.out
    (row,) = (line.split() for line in said.out.splitlines() if line.startswith("HOLRR  "))
    ranks, count = tuple(map(int, row[1:-3:2])), int(row[-3].replace(",", ""))
    assert max(ranks) < 10
    # What the demo says of its data: 50 samples, 10 inputs, rank 6 x 4 x 4 x 8, ...
    shape, options = (10, 10, 10), {"snr": 1.0, "normalize": True, "random_state": 0}
    data = make_tensor_regression(550, 10, shape, rank=(6, 4, 4, 8), **options)
    X_train, X_new, Y_train, Y_new = train_test_split(*data, train_size=50, random_state=0)
    model = HOLRRCV(cv=5, selection="min").fit(X_train, Y_train)
    assert (*model.rank_, model.n_parameters_) == (*ranks, count)
    assert f"{rmse(Y_new, model.predict(X_new)):.4f}" == row[-2]
    page = (tmp_path / "d" / "report.html").read_text("utf-8")  # the report that `report` writes
    assert f'<td class="number">{float(row[-2]):.4g}</td>' in page
    assert "low-rank regression" in page


# ---------------------------------------------------------------- unusual inputs


def test_predict_says_how_many_rows_are_unlike_those_of_the_fit(folder, capsys, tmp_path):
    X = np.load(folder / "X.npy")
    far = X.copy()
    far[:3] *= 100
    for name, inputs in (("near", X), ("far", far), ("all", 100 * X)):
        np.save(tmp_path / f"{name}.npy", inputs)
    for words in (["--rank", "2"], ["--cv", "2", "--standardize"]):
        model = tmp_path / "m.holrr"
        assert (
            main(["fit", *(str(folder / f"{v}.npy") for v in "XY"), "-o", str(model), *words]) == 0
        )
        said = {}
        for name in ("near", "far", "all"):
            capsys.readouterr()
            place = tmp_path / "P.npy"
            assert (
                main(["predict", str(model), str(tmp_path / f"{name}.npy"), "-o", str(place)]) == 0
            )
            said[name] = capsys.readouterr()
        assert "0 of 40 rows are outside the 99.9 % limits" in said["near"].out
        assert "3 of 40 rows are outside" in said["far"].out
        assert not said["far"].err
        assert "40 of 40 rows" in said["all"].out
        assert "holrr predict: warning: 40 of 40 rows of X are unlike" in said["all"].err


def test_predict_is_silent_about_models_without_limits(folder, capsys, tmp_path):
    model, place = tmp_path / "m.holrr", tmp_path / "P.npy"
    files = [str(folder / f"{v}.npy") for v in "XY"]
    assert main(["fit", *files, "-o", str(model), "--model", "kernel-rls", "--alpha", "1"]) == 0
    capsys.readouterr()
    assert main(["predict", str(model), files[0], "-o", str(place)]) == 0
    assert "outside" not in capsys.readouterr().out
