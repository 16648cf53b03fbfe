"""The comparison of libraries: its table, and rows that a stopped run keeps."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import KFold

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import libraries  # noqa: E402
import pages  # noqa: E402


def row(data, library, r2, seconds):
    size = {"samples": 60, "inputs": 4, "outputs": "24x36"}
    return {"data": data, **size, "library": library, "r2": r2, "seconds": seconds, "settings": ""}


OLD = [row("EEG", "HOLRRCV", 0.4, 2.0), row("EEG", "xeofs CPCCA", 0.3, 30.0)]
NEW = [row("EEG", "HOLRRCV", 0.5, 1.0), row("climate maps", "HOLRRCV", 0.4326, 0.05)]


def test_new_rows_replace_those_of_the_same_data_and_library():
    found = libraries.merged(NEW, OLD)
    assert [(r["data"], r["library"], r["r2"]) for r in found] == [
        ("climate maps", "HOLRRCV", 0.4326),
        ("EEG", "HOLRRCV", 0.5),
        ("EEG", "xeofs CPCCA", 0.3),
    ]


def test_the_table_has_a_column_for_each_data_set():
    head, _, *lines = libraries.table(libraries.merged(NEW, OLD)).splitlines()
    assert head.count("60 x 4 → 24x36") == 2
    assert lines == [
        "| HOLRRCV | **0.433** (0.05) | **0.500** (1) |",
        "| xeofs CPCCA | | 0.300 (30) |",
    ]


def test_rows_are_stored_after_each_data_set(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    monkeypatch.setattr(libraries, "RESULTS", tmp_path / "libraries.csv")
    (tmp_path / "comparison.md").write_text("<!-- libraries -->\n<!-- end of libraries -->\n")
    stored = []

    def measure(name, repeats):
        if name == "EEG":
            stored.extend(libraries.read())
            raise KeyboardInterrupt
        return NEW[1:]

    monkeypatch.setattr(libraries, "measure", measure)
    with pytest.raises(KeyboardInterrupt):
        libraries.main(["--write", "--tasks", "climate maps", "EEG"])
    assert [(r["library"], r["r2"], r["seconds"]) for r in stored] == [("HOLRRCV", 0.4326, 0.05)]
    assert libraries.read() == stored
    assert pages.read_section("libraries") == libraries.table(libraries.read())


def test_searches_have_grids_that_fit_the_data():
    found = libraries.searches(30, 40, KFold(5))
    assert list(found) == [name for name in libraries.LIBRARIES if name in found]
    components = found["scikit-learn PLSRegression"].param_grid["n_components"]
    assert max(components) < 24  # inner training sets have 24 samples
    if "TensorLy CPRegressor" in found:
        assert max(found["TensorLy CPRegressor"].param_grid["rank"]) == 8


def test_cp_regression_has_an_intercept():
    pytest.importorskip("tensorly", reason="tensorly is not installed")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) + 5
    Y = np.einsum("ni,i,j->nj", X, [1.0, 2, 3], [1.0, -1]) + 100
    model = libraries.CP(1, 1e-6).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), Y, rtol=1e-3)


def test_chosen_settings_are_named():
    X, Y = np.random.default_rng(0).normal(size=(2, 40, 3))
    for name, search in libraries.searches(40, 3, KFold(5)).items():
        if name in libraries.FLAT:
            words = libraries.settings(search.fit(X, Y))
            assert words.startswith("n_components" if "PLS" in name else "alpha")
