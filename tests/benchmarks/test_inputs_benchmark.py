"""The benchmark of tensor inputs runs, its data are as described, and the guide has its tables."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import inputs  # noqa: E402


def tables(text):
    """The rows of each Markdown table of a text, as lists of cells."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", text, re.M)
    return [[row.strip("| ").split(" | ") for row in block.splitlines()] for block in blocks]


@pytest.mark.filterwarnings("ignore:The best penalty")
def test_every_part_is_measured_and_judged(capsys):
    pytest.importorskip("tensorly", reason="tensorly is not installed")
    inputs.main(["--quick"])
    found = tables(capsys.readouterr().out)
    assert [len(rows) - 2 for rows in found] == [5, 4, 6, 3, 2, 2]
    for errors, ratios in (found[0:2], found[2:4]):
        error = {row[0]: float(row[1]) for row in errors[2:]}
        assert min(error.values()) > 0
        for pair, ratio, asked, met in ratios[2:]:
            ours, theirs = pair.split(" / ")
            assert float(ratio) == pytest.approx(error[ours] / error[theirs], abs=0.02)
            if asked != "-":
                assert met == ("yes" if float(ratio) <= float(asked) else "no")
    # The modes of X tell the analytes from the interferent; without them one is taken for another.
    first = {row[0]: float(row[1]) for row in found[0][2:]}
    assert first["HOLRRCV, tensor X"] < 0.7 * first["ridge, flat X"]


def test_landscapes_have_four_components_and_the_noise_that_is_asked_for():
    X, y, X_test, y_test = inputs.excitation_emission(0.0, seed=3)
    assert (X.shape, y.shape, X_test.shape, y_test.shape) == (
        (45, 60, 25),
        (45, 3),
        (200, 60, 25),
        (200, 3),
    )
    values = np.linalg.svd(X.reshape(45, -1), compute_uv=False)
    assert values[3] > 1e-3 * values[0]
    assert values[4] < 1e-12 * values[0]
    # Without noise the concentrations are a linear function of the landscape.
    coef = np.linalg.lstsq(X.reshape(45, -1), y)[0]
    np.testing.assert_allclose(X_test.reshape(200, -1) @ coef, y_test, atol=1e-8)
    noisy = inputs.excitation_emission(0.5, seed=3)[0]
    spread = np.linalg.svd(noisy.reshape(45, -1), compute_uv=False)[10:]
    assert 0.8 < np.sqrt(np.mean(spread**2) / 1500) / 0.5 < 1.2


def test_components_of_one_fit_are_those_of_smaller_fits():
    regression = pytest.importorskip("tensorly.regression", reason="tensorly is not installed")
    X, y, X_test, _ = inputs.excitation_emission(0.2, seed=1)
    found = inputs.cp_plsr_path(X, y, X_test)
    for k in (1, 3, 5):
        expected = regression.CP_PLSR(k).fit(X, y).predict(X_test)
        np.testing.assert_allclose(found[k - 1], expected, atol=1e-8)


def test_white_inputs_have_coefficients_of_the_ranks_that_are_asked_for():
    for input_rank, expected in ((None, 6), (2, 2)):
        X, _, X_test, signal = inputs.white(50, (6, 7), (4, 3), input_rank, seed=0)
        assert X.shape == (50, 6, 7)
        coef = np.linalg.lstsq(X_test.reshape(len(X_test), -1), signal.reshape(len(signal), -1))[0]
        assert np.linalg.matrix_rank(coef.reshape(6, -1), tol=1e-8) == expected


def test_the_guide_has_a_place_for_the_tables():
    guide = (ROOT / "docs" / "developer_benchmarks.md").read_text(encoding="utf-8")
    section = guide.partition("<!-- tensor inputs -->")[2].partition("<!-- end of tensor inputs")[0]
    assert [len(rows) - 2 for rows in tables(section)] == [5, 4, 6, 3, 6, 2]
