"""Forecasts beside published ones: protocols, claims, page and command."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from published_files import write_all, write_series

from holrr import HOLRR, RLSCV
from paper import forecasts
from paper.command import main
from paper.drawing import forecasts as drawing
from paper.forecast_data import make_windows, read_series
from paper.forecast_page import blocks, write_page
from paper.forecast_results import AFTER, SCRIPTS, Place, beaten, ours, places, published
from paper.forecasts import Config
from paper.guide import refresh
from paper.progress import silent
from paper.published import NIPS_2014
from paper.report.forecasts import checks
from paper.reproduce import reproduce
from paper.running import run
from paper.store import Store
from paper.tables import read_csv, to_csv
from workers import made_once

DOCS = Path(__file__).resolve().parents[2] / "docs"
METHODS = ("ridge", "stack", "stack, blocks", "ridge, own inputs", "stack, own inputs")
QUICK = {"lags": (3,), "nips": ("CCDS", "USHCN")}


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with simulated files under "data" and the results of a run under "report"."""

    def make(folder):
        data = folder / "data"
        data.mkdir(parents=True)
        config = Config(str(write_all(data)), methods=METHODS, **QUICK)
        reproduce({"forecasts": config}, folder / "report", progress=silent)

    return made_once(tmp_path_factory, "forecasts", make)


@pytest.fixture(scope="session")
def rows(made):
    return read_csv(made / "report" / "forecasts.csv")


# ---------------------------------------------------------------- protocols


def test_fits_at_the_settings_of_the_authors_are_holrr_and_its_refinement(made, rows):
    windows = make_windows(read_series(str(made / "data"), "kasai", "CCDS"), 3, int(0.8 * 156))
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


def test_penalties_that_test_data_and_folds_choose_are_among_those_tried(rows):
    holrr = [row for row in rows if row["kind"] == "same" and row["method"] == "holrr"]
    assert len(holrr) == 2
    for row in holrr:
        assert {row["alpha_test"], row["alpha_folds"]} <= set(forecasts.DECADES)
        assert row["error_folds"] > 0


def test_the_split_of_the_scripts_has_the_last_training_steps_in_its_test(made, rows):
    """One fit, two sets of test windows; errors are roots."""
    windows = make_windows(read_series(str(made / "data"), "nips", "CCDS"), 3, 140)
    n, place = windows.n_train, Place("nips", "CCDS", 3)
    search = RLSCV(cv=5, fit_intercept=False, input_rank=None).fit(windows.X[:n], windows.y[:n])
    for split, first in {AFTER: n, SCRIPTS: n - 3}.items():
        error = np.sqrt(np.mean((search.predict(windows.X[first:]) - windows.y[first:]) ** 2))
        np.testing.assert_allclose(ours(rows, place, split)["ridge"], error, rtol=1e-10)
    counts = {row["split"]: row["n_test"] for row in rows if row.get("n_test")}
    assert counts == {AFTER: 960 - 929, SCRIPTS: 960 - 929 + 3}


def test_the_choice_does_not_depend_on_the_test_part(made, tmp_path):
    """Test steps of other values leave ranks, penalties and held-out errors as they are."""
    chosen = []
    config = Config(str(tmp_path), kasai=(), nips=("CCDS",), methods=METHODS)
    series = np.array(read_series(str(made / "data"), "nips", "CCDS"))
    for scale in (1.0, 10.0):
        folder = tmp_path / f"{scale:g}"
        folder.mkdir()
        changed = series.copy()
        changed[140:] *= scale
        write_series(folder / "climateP17.mat", changed)
        rows = forecasts.table(replace(config, data_dir=str(folder)))
        chosen.append(
            [{k: v for k, v in row.items() if k not in ("error", "seconds")} for row in rows]
        )
    assert chosen[0] == chosen[1]


def test_baselines_are_zero_and_the_mean_of_the_month(made, rows):
    series = read_series(str(made / "data"), "kasai", "CCDS")
    test = series[124:]
    found = ours(rows, Place("kasai", "CCDS", 3), kind="baseline")
    np.testing.assert_allclose(found["zero"], np.mean(test**2), rtol=1e-10)
    # The first three months have no past: no windows end in them.
    months = [series[3:124][(np.arange(3, 124) % 12) == k].mean(axis=0) for k in range(12)]
    predicted = np.stack([months[t % 12] for t in range(124, 156)])
    np.testing.assert_allclose(
        found["month of the year"], np.mean((test - predicted) ** 2), rtol=1e-10
    )


def test_own_inputs_help_series_that_continue_themselves(rows):
    place = Place("nips", "CCDS", 3)
    chosen = [row for row in rows if row["method"] == "stack, own inputs"]
    assert {row["own"] for row in chosen} == {"variable and place"}
    errors = ours(rows, place)
    for kind in ("ridge", "stack"):
        assert errors[f"{kind}, own inputs"] < 0.9 * errors[kind]


def test_a_run_can_be_resumed(made, tmp_path):
    config = Config(str(made / "data"), kasai=("meteo",), nips=(), lags=(3,), methods=("ridge",))
    first = run(forecasts.EXPERIMENT, config, store=Store(tmp_path / "u.jsonl", config))
    lines = (tmp_path / "u.jsonl").read_text().splitlines()
    (tmp_path / "u.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    store = Store(tmp_path / "u.jsonl", config, resume=True)
    again = run(forecasts.EXPERIMENT, config, store=store)

    def without_seconds(rows):
        return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]

    assert without_seconds(again) == without_seconds(first)


@pytest.mark.parametrize(
    ("name", "value"), [("kasai", "USHCN"), ("nips", "meteo"), ("methods", "lasso")]
)
def test_unknown_settings_are_named_in_the_error(name, value):
    with pytest.raises(ValueError, match=rf"{name} must be among .*; got \['{value}'\]"):
        Config(**{name: (value,)})


# ---------------------------------------------------------------- results, claims, picture


def test_the_least_published_error_of_each_method_is_quoted(rows):
    assert published(rows, Place("kasai", "CCDS", 3)) == {
        "HOLRR": 0.9,
        "Riemannian": 0.85,
        "STPG": 0.87,
    }
    assert published(rows, Place("nips", "USHCN", 3)) == NIPS_2014["USHCN"]


def test_places_in_which_a_method_has_the_larger_error(rows):
    for method, other in (("ridge", "stack"), ("stack", "ridge")):
        for place, error, less in beaten(rows, method, other):
            assert error == ours(rows, place)[method] > ours(rows, place)[other] == less
    both = len(beaten(rows, "ridge", "stack")) + len(beaten(rows, "stack", "ridge"))
    assert both <= len(places(rows)) == 4


def claim(rows, words):
    (found,) = [check for check in checks(Config(), rows) if words in check.claim]
    return found


def test_claims_hold_or_fail_by_the_rows(rows):
    """The simulated errors are not those of the authors; with theirs the claim holds."""
    assert not claim(rows, "stored errors of HOLRR").holds
    met = [
        {**row, "error": row["published"] + 4e-5} if row["kind"] == "same" else row for row in rows
    ]
    assert claim(met, "stored errors of HOLRR").holds
    assert claim(met, "Each of the 2 stored").found == "largest difference 4e-05"
    assert claim(met, "Riemannian").holds
    farther = [
        {**row, "error": row["published"] + 3e-4} if row["kind"] == "same" else row for row in met
    ]
    assert not claim(farther, "Riemannian").holds
    low = [{**row, "error": 0.1} if row["kind"] == "chosen" else row for row in rows]
    for words in (
        "the stack below 0.309",
        "reach the target errors",
        "below every",
        "lower error than the mean",
    ):
        found = [check.holds for check in checks(Config(), low) if words in check.claim]
        assert found
        assert all(found)
        found = [
            check.holds
            for check in checks(
                Config(), [{**r, "error": 9.0} if r["kind"] == "chosen" else r for r in rows]
            )
            if words in check.claim
        ]
        assert not any(found)


def test_the_picture_has_a_panel_for_each_column(rows):
    figure = drawing.draw(rows)
    titles = [ax.get_title(loc="left") for ax in figure.axes if ax.get_title(loc="left")]
    assert titles == [
        "Kasai et al., CCDS, 3 lags",
        "Kasai et al., meteo, 3 lags",
        "NIPS 2014, CCDS, 3 lags",
        "NIPS 2014, USHCN, 3 lags",
    ]


# ---------------------------------------------------------------- page


@pytest.fixture
def docs(tmp_path):
    """The page of the guide without what is written from results."""
    (tmp_path / "images").mkdir()
    (tmp_path / "results").mkdir()
    shutil.copy(DOCS / "published.md", tmp_path)
    return tmp_path


def test_a_run_is_carried_into_the_page(made, rows, docs):
    refresh(made / "report", docs)
    text = (docs / "published.md").read_text()
    for block in blocks(rows).values():
        assert block in text
    assert "| ridge | " in text
    assert (docs / "images" / "published_forecasts.png").read_bytes().startswith(b"\x89PNG")
    assert (docs / "results" / "forecasts.csv").read_text() == to_csv(rows)
    write_page(docs)  # again, from the stored results alone
    assert (docs / "published.md").read_text() == text


def test_the_page_shows_errors_of_the_results(rows):
    found = blocks(rows)
    errors = {place: ours(rows, place) for place in places(rows)}
    line = next(x for x in found["kasai"].splitlines() if x.startswith("| ridge |"))
    shown = [float(cell.strip(" *")) for cell in line.strip("|").split("|")[1:]]
    np.testing.assert_allclose(
        shown, [errors[p]["ridge"] for p in places(rows, "kasai")], atol=5e-5
    )
    assert "0.8325" in found["nips"]
    assert "| CCDS, 3 lags | 140 | 16 | 19 | 3 |" in found["overlap"]
    assert found["choices"].count("its own past") >= 1


def test_without_results_the_page_says_how_to_compute_them(tmp_path):
    with pytest.raises(FileNotFoundError, match="python -m paper forecasts"):
        write_page(tmp_path)


def test_the_page_of_the_guide_is_that_of_its_stored_results():
    text = (DOCS / "published.md").read_text()
    for block in blocks(read_csv(DOCS / "results" / "forecasts.csv")).values():
        assert block in text


# ---------------------------------------------------------------- command


def test_the_command_names_what_is_missing(tmp_path, monkeypatch, capfd):
    monkeypatch.delenv("HOLRR_PUBLISHED_DIR", raising=False)
    out = ["--out", str(tmp_path / "out")]
    assert main(["forecasts", *out]) == 3
    assert "HOLRR_PUBLISHED_DIR" in capfd.readouterr().err
    monkeypatch.setenv("HOLRR_PUBLISHED_DIR", str(tmp_path))
    assert main(["forecasts", "--quick", *out]) == 3
    error = capfd.readouterr().err
    assert "climateP3.mat" in error
    assert "Eng-RSMY/MultiSourceTemporal" in error
    assert "norm_4sq_small" not in error  # not needed by --quick
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
    assert main(["forecasts", "--data-dir", str(tmp_path / "nowhere")]) == 3
    assert "nowhere does not exist" in capfd.readouterr().err


def test_the_report_has_the_section(made):
    page = (made / "report" / "report.html").read_text()
    assert "Published forecasts" in page
    assert str(made.parent) not in page  # the page does not contain the folder of the data


# ---------------------------------------------------------------- the published files


@pytest.mark.slow
def test_the_stored_errors_of_holrr_and_of_the_riemannian_method_are_met(published_dir):
    config = Config(str(published_dir), nips=(), methods=("ridge",))
    found: list[dict] = []
    for data in config.kasai:
        for lags in config.lags:
            found += forecasts.EXPERIMENT.run_unit(config, ("kasai", data, lags, "published"))
    same = [row for row in found if row["kind"] == "same"]
    for method, count, within in (("holrr", 28, 5e-5), ("proposed", 27, 2e-4)):
        cells = [row for row in same if row["method"] == method]
        assert len(cells) == count
        assert max(abs(row["error"] - row["published"]) for row in cells) <= within


def test_stored_results_are_those_of_the_code(published_dir):
    """Quick searches on the published files; the slow ones have the same code."""
    stored = read_csv(DOCS / "results" / "forecasts.csv")
    config = Config(str(published_dir), lags=(3,), nips=("USHCN",), methods=("ridge", "best rank"))
    for place in (Place("kasai", "meteo", 3), Place("nips", "USHCN", 3)):
        for method in config.methods:
            for row in forecasts.EXPERIMENT.run_unit(config, (*place, method)):
                error = ours(stored, place, row["split"])[method]
                np.testing.assert_allclose(row["error"], error, rtol=1e-6)
