"""Forecasts beside published ones: files, protocols, tables."""

import numpy as np
import pytest
from published_files import simulate, write_all, write_series, write_x

from holrr import HOLRR, RLSCV
from paper import forecasts
from paper.experiment import run
from paper.forecasts import FILES, Config, errors_of, make_windows, read_cells, read_series
from paper.published import NIPS_2014

METHODS = ("ridge", "stack", "ridge, own inputs", "stack, own inputs")
CONFIG = Config(lags=(3,), nips=("CCDS", "USHCN"), methods=METHODS)
AFTER = "after training"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with simulated files."""
    return write_all(tmp_path_factory.mktemp("published"))


@pytest.fixture(scope="module")
def rows(made):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLRR_PUBLISHED_DIR", str(made))
        return run(forecasts, CONFIG)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("key", "write"), [(("kasai", "CCDS"), write_x), (("nips", "USHCN"), write_series)]
)
def test_series_have_steps_first_then_variables_and_places(tmp_path, key, write):
    series = simulate(9, 3, 4)
    write(tmp_path / FILES[key][0][0], series)
    np.testing.assert_array_equal(read_series(tmp_path, *key), series)


def test_a_file_is_found_by_the_name_that_the_repository_has(tmp_path):
    series = simulate(8, 2, 2)
    write_x(tmp_path / "CCDS_tesor_2.mat", series)
    np.testing.assert_array_equal(read_series(tmp_path, "kasai", "CCDS"), series)


def test_a_missing_file_is_named_with_its_source(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"lacks climateP3\.mat.*Eng-RSMY.* folder 'data'"):
        read_series(tmp_path, "nips", "USHCN")
    monkeypatch.delenv("HOLRR_PUBLISHED_DIR", raising=False)
    with pytest.raises(FileNotFoundError, match="Set HOLRR_PUBLISHED_DIR to a folder"):
        forecasts.folder_of_series()


def test_the_past_of_a_step_ends_before_it_and_training_before_the_test_steps():
    series = np.arange(10.0)[:, None, None] + np.zeros((10, 2, 4))
    windows = make_windows(series, 3, 8)
    assert (windows.X.shape, windows.y.shape) == ((7, 3, 2, 4), (7, 2, 4))
    np.testing.assert_array_equal(windows.X[:, :, 0, 0], np.arange(7)[:, None] + np.arange(3))
    np.testing.assert_array_equal(windows.y[:, 0, 0], np.arange(3, 10))
    assert windows.y[: windows.n_train].max() == 7  # the eighth step


@pytest.mark.parametrize("n_steps", [6, 10])
def test_windows_need_training_and_test_steps(n_steps):
    with pytest.raises(ValueError, match=f"got {n_steps}"):
        make_windows(np.zeros((10, 1, 1)), 3, n_steps)


def test_stored_errors_have_their_ranks_and_penalties(tmp_path):
    cells = read_cells(write_all(tmp_path), "CCDS", 3)
    assert [cell.method for cell in cells] == ["holrr", "proposed", "stpg", "stpg"]
    assert (cells[0].rank, cells[0].penalty, cells[0].mse) == ((2, 2, 2), 100.0, 0.9)
    assert cells[2].penalty == 1e-7
    assert read_cells(tmp_path, "CCDS", 5) == []


# ---------------------------------------------------------------- protocols


def test_fits_at_the_settings_of_the_authors_are_holrr_and_its_refinement(made, rows):
    windows = make_windows(read_series(made, "kasai", "CCDS"), 3, int(0.8 * 156))
    n = windows.n_train
    X, y = windows.X.reshape(len(windows.X), -1), windows.y
    same = [row for row in rows if row["kind"] == "same" and row["data"] == "CCDS"]
    assert [row["method"] for row in same] == ["holrr", "proposed"]
    for row, refine in zip(same, (False, True), strict=True):
        model = HOLRR(
            (2, 2, 2), alpha=100, subspaces="response", fit_intercept=False, refine=refine
        )
        predicted = model.fit(X[:n], y[:n]).predict(X[n:])
        np.testing.assert_allclose(row["error"], np.mean((predicted - y[n:]) ** 2), rtol=1e-10)
    assert same[0]["error"] != same[1]["error"]


def test_the_split_of_the_scripts_has_the_last_training_steps_in_its_test(made, rows):
    """One fit, two sets of test windows; errors are roots."""
    windows = make_windows(read_series(made, "nips", "CCDS"), 3, 140)
    n, place = windows.n_train, ("nips", "CCDS", 3)
    search = RLSCV(cv=5, fit_intercept=False, input_rank=None).fit(windows.X[:n], windows.y[:n])
    for split, first in {AFTER: n, "scripts": n - 3}.items():
        error = np.sqrt(np.mean((search.predict(windows.X[first:]) - windows.y[first:]) ** 2))
        np.testing.assert_allclose(errors_of(rows, place, split)["ridge"], error, rtol=1e-10)
    counts = {row["split"]: row["n_test"] for row in rows if row.get("n_test")}
    assert counts == {AFTER: 960 - 929, "scripts": 960 - 929 + 3}


def test_the_choice_does_not_depend_on_the_test_part(made, tmp_path, monkeypatch):
    """Test steps of other values leave ranks, penalties and held-out errors as they are."""
    chosen = []
    config = Config(kasai=(), nips=("CCDS",), methods=METHODS)
    series = np.array(read_series(made, "nips", "CCDS"))
    for scale in (1.0, 10.0):
        folder = tmp_path / f"{scale:g}"
        folder.mkdir()
        changed = series.copy()
        changed[140:] *= scale
        write_series(folder / "climateP17.mat", changed)
        monkeypatch.setenv("HOLRR_PUBLISHED_DIR", str(folder))
        rows = run(forecasts, config)
        chosen.append(
            [{k: v for k, v in row.items() if k not in ("error", "seconds")} for row in rows]
        )
    assert chosen[0] == chosen[1]


def test_baselines_are_zero_and_the_mean_of_the_month(made, rows):
    series = read_series(made, "kasai", "CCDS")
    test = series[124:]
    found = errors_of(rows, ("kasai", "CCDS", 3))
    np.testing.assert_allclose(found["zero"], np.mean(test**2), rtol=1e-10)
    # The first three months have no past: no windows end in them.
    months = [series[3:124][(np.arange(3, 124) % 12) == k].mean(axis=0) for k in range(12)]
    predicted = np.stack([months[t % 12] for t in range(124, 156)])
    np.testing.assert_allclose(
        found["month of the year"], np.mean((test - predicted) ** 2), rtol=1e-10
    )


def test_own_inputs_help_series_that_continue_themselves(rows):
    place = ("nips", "CCDS", 3)
    chosen = [row for row in rows if row["method"] == "stack, own inputs"]
    assert {row["own"] for row in chosen} == {"variable and place"}
    errors = errors_of(rows, place)
    for kind in ("ridge", "stack"):
        assert errors[f"{kind}, own inputs"] < 0.9 * errors[kind]


# ---------------------------------------------------------------- tables and figure


def test_the_least_published_error_of_each_method_is_quoted(rows):
    found = errors_of(rows, ("kasai", "CCDS", 3))
    quoted = {name: error for name, error in found.items() if name.endswith("published")}
    names = ("HOLRR, published", "Riemannian, published", "STPG, published")
    assert quoted == dict(zip(names, (0.9, 0.85, 0.87), strict=True))
    found = errors_of(rows, ("nips", "USHCN", 3))
    assert (
        NIPS_2014["USHCN"].items()
        <= {k.removesuffix(", published"): v for k, v in found.items()}.items()
    )


def test_tables_and_figure_have_a_column_for_each_data_set(rows):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    text = forecasts.text(rows)
    assert text.count("|  | CCDS, 3 lags | meteo, 3 lags |") == 1
    assert text.count("|  | CCDS, 3 lags | USHCN, 3 lags |") == 2
    error = errors_of(rows, ("kasai", "CCDS", 3))["ridge"]
    assert f"| ridge | {error:.4f} |" in text
    (figure,) = forecasts.figures(CONFIG, rows).values()
    titles = [ax.get_title(loc="left") for ax in figure.axes if ax.get_title(loc="left")]
    assert titles == [
        "Kasai et al., CCDS, 3 lags",
        "Kasai et al., meteo, 3 lags",
        "NIPS 2014, CCDS, 3 lags",
        "NIPS 2014, USHCN, 3 lags",
    ]


# ---------------------------------------------------------------- the published files


@pytest.mark.slow
@pytest.mark.usefixtures("published_dir")
def test_the_stored_errors_of_holrr_and_of_the_riemannian_method_are_met():
    config = Config(nips=(), methods=("ridge",))
    found = []
    for data in config.kasai:
        for lags in config.lags:
            found += forecasts.run_unit(config, ("kasai", data, lags, "published"))
    same = [row for row in found if row["kind"] == "same"]
    for method, count, within in (("holrr", 28, 5e-5), ("proposed", 27, 2e-4)):
        cells = [row for row in same if row["method"] == method]
        assert len(cells) == count
        assert max(abs(row["error"] - row["published"]) for row in cells) <= within


@pytest.mark.usefixtures("published_dir")
def test_errors_on_the_published_files_are_those_of_the_page():
    """Quick searches; the slow ones have the same code."""
    shown = {
        ("kasai", "meteo", 3): {"ridge": 0.3153, "best rank": 0.3091},
        ("nips", "USHCN", 3): {"ridge": 0.8972, "best rank": 0.8972},
    }
    for place, errors in shown.items():
        for method, error in errors.items():
            rows = forecasts.run_unit(Config(), (*place, method))
            assert errors_of(rows, place)[method] == pytest.approx(error, abs=5e-5)
