"""The model that the words of the command line stand for."""

import numpy as np
import pytest

import holrr
from holrr.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Outputs that are four functions of two features."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(120, 2))
    functions = np.stack([np.sin(2 * X[:, 0]), np.cos(2 * X[:, 1]), X.prod(1), np.sin(3 * X[:, 1])])
    Y = np.tensordot(functions.T, rng.normal(size=(4, 4, 4)), axes=1)
    np.save("X.npy", X)
    np.save("Y.npy", Y + 0.01 * rng.normal(size=Y.shape))
    return tmp_path


@pytest.mark.parametrize("kind", ["kernel-holrr", "kernel-lrr"])
def test_the_input_rank_of_a_kernel_is_not_capped_at_the_features(folder, kind):
    words = ["fit", "X.npy", "Y.npy", "--model", kind, "--gamma", "0.5", "--alpha", "0.001,0.01"]
    assert main([*words, "--rank", "4", "--cv", "3", "-o", "m"]) == 0
    model, Y = holrr.load("m"), np.load("Y.npy")
    assert np.ravel(model.rank_)[0] == 4
    assert np.sqrt(np.mean((model.predict(np.load("X.npy")) - Y) ** 2)) < 0.1
    assert main([*words, "--rank", "999", "--cv", "3", "-o", "m"]) == 0


@pytest.mark.parametrize("kind", ["holrr", "lrr", "mlmt-nc"])
def test_a_rank_above_the_sizes_is_full_with_and_without_a_search(folder, kind):
    for cv in ([], ["--cv", "3"]):
        words = ["--model", kind, "--rank", "99", "--alpha", "1", *cv, "-o", "m"]
        assert main(["fit", "X.npy", "Y.npy", *words]) == 0
        assert np.ravel(holrr.load("m").rank_)[0] == 2


@pytest.mark.parametrize("kind", ["holrr", "kernel-holrr", "lrr", "kernel-lrr", "mlmt-nc"])
def test_a_share_is_a_rank_of_every_model_that_has_one(folder, kind):
    assert main(["fit", "X.npy", "Y.npy", "--model", kind, "--rank", "0.9", "-o", "m"]) == 0
    model = holrr.load("m")
    assert model.rank == 0.9
    if kind == "holrr":
        by_hand = holrr.HOLRR((0.9, 0.9, 0.9)).fit(np.load("X.npy"), np.load("Y.npy"))
        assert model.rank_ == by_hand.rank_


@pytest.mark.parametrize(
    "rank", ["inf", "-inf", "nan", "1e400", "1.5", "0", "-1", "", "2,inf", "x"]
)
def test_an_invalid_rank_is_a_command_line_error(folder, capfd, rank):
    assert main(["fit", "X.npy", "Y.npy", f"--rank={rank}", "-o", "m"]) == 2
    error = capfd.readouterr().err
    assert "not a rank: a whole number of at least 1" in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.parametrize("kind", ["holrr", "kernel-rls"])
@pytest.mark.parametrize("cv", [[], ["--cv", "3"]])
def test_standardized_models_do_not_depend_on_the_units_of_the_inputs(folder, capfd, kind, cv):
    """The file holds all that is needed, for the command line and for Python."""
    np.save("Z.npy", np.load("X.npy") * [1e-4, 1e5] + [7.0, 1e6])
    words = ["--model", kind, "--alpha", "0.1", *cv, "--standardize", "-o", "m"]
    found = []
    for name in ("X.npy", "Z.npy"):
        assert main(["fit", name, "Y.npy", *words]) == 0
        assert "preprocessing  standardization" in capfd.readouterr().out
        assert main(["predict", "m", name, "-o", "P.npy"]) == 0
        found.append(np.load("P.npy"))
        np.testing.assert_array_equal(holrr.load("m").predict(np.load(name)), found[-1])
        assert main(["score", "m", name, "Y.npy"]) == 0
        assert main(["info", "m"]) == 0
        assert "preprocessing  standardization" in capfd.readouterr().out
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-8)
