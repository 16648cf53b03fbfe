"""Each experiment end to end on tiny settings."""

import csv
import io
import math

import numpy as np
import pytest
from tiny import tiny_images, tiny_meteo, tiny_runtime, tiny_synthetic

from holrr import HOLRR, HOLRRCV, RLS, RLSCV, KernelRLSCV, TraceNormRegressionCV
from paper import images, meteo, runtime, synthetic
from paper.meteo_methods import (
    ALPHAS,
    METHODS,
    Windows,
    by_validation,
    climatology,
    on_sphere,
)
from paper.published import TABLE_2
from paper.tables import mean_and_error, read_csv, summarise, to_csv

# ---------------------------------------------------------------- tables


def test_summary_is_the_mean_and_its_standard_error():
    rows = [{"m": m, "v": v} for m, v in (("a", 1.0), ("b", 5.0), ("a", 2.0), ("a", 6.0))]
    first, second = summarise(rows, ["m"], "v")
    assert (first["m"], first["mean"], first["n"]) == ("a", 3.0, 3)
    assert first["error"] == pytest.approx(np.std([1, 2, 6], ddof=1) / math.sqrt(3))
    assert second["mean"] == 5.0
    assert math.isnan(second["error"])
    assert math.isnan(mean_and_error([1.0])[1])


def test_csv_keeps_every_digit_and_all_columns(tmp_path):
    rows = [{"a": 1, "b": "x, y"}, {"a": 2, "c": 1 / 3}]
    text = to_csv(rows)
    assert next(csv.reader(io.StringIO(text))) == ["a", "b", "c"]
    (tmp_path / "t.csv").write_text(text)
    assert read_csv(tmp_path / "t.csv")[1] == {"a": 2, "b": "", "c": 1 / 3}


# ---------------------------------------------------------------- synthetic


def test_synthetic_has_a_row_for_every_method_size_and_trial():
    config = tiny_synthetic(sizes=(15,), n_trials=1, slow_methods=("linear",))
    rows = synthetic.table(config)
    by_panel = {p: {r["method"] for r in rows if r["panel"] == p} for p in config.panels}
    assert by_panel["linear"] == set(synthetic.LINEAR_METHODS)
    assert by_panel["linear"] - by_panel["noisy"] == {"Trace norm", "MLMT-NC"}
    assert by_panel["nonlinear"] == set(synthetic.NONLINEAR_METHODS)
    assert len(rows) == 7 + 4 + 5 + 5
    assert all(0 < r["rmse"] < 10 for r in rows)


def test_synthetic_signal_is_the_outputs_without_noise():
    config = tiny_synthetic()
    for panel in ("linear", "nonlinear"):
        data = synthetic.draw_data(config, panel, 0)
        noise = data.Y - data.signal
        assert noise.std() == pytest.approx(config.noise_level, rel=0.15)
        assert abs(np.corrcoef(noise.ravel(), data.signal.ravel())[0, 1]) < 0.1


def test_noise_as_a_variance_is_its_root_as_a_standard_deviation():
    assert tiny_synthetic(noise=0.09, noise_unit="variance").noise_level == pytest.approx(0.3)


# ---------------------------------------------------------------- images


def test_images_reconstruct_by_every_method_at_the_papers_ranks():
    rows = images.table(tiny_images(n_trials=1))
    found = {(r["task"], r["method"], r["rank"]) for r in rows if not r["chosen"]}
    assert {("channels", "LRR", "1"), ("channels", "HOLRR", "(3,1,1)")} <= found
    assert {("rows", "LRR", "2"), ("rows", "HOLRR", "(4,4,3)"), ("rows", "RLS", "")} <= found
    chosen = {(r["task"], r["method"]) for r in rows if r["chosen"]}
    # Not ours alone: the others choose penalty and ranks in the same way.
    methods = ("RLS-CV", "LRR-CV", "HOLRR-CV")
    assert chosen == {(task, m) for task in ("channels", "rows") for m in methods}


def test_image_errors_are_those_of_the_coefficients():
    config = tiny_images()
    X, Y, W = images.make_image_regression(
        "cross", "rows", n_samples=60, random_state=images.seed_for(0, "images", 0)
    )
    by_hand = RLS(alpha=1.0, fit_intercept=False).fit(X, Y).coef_
    found = images.reconstruct(config, "cross", "rows")[0]
    assert found.rmse == pytest.approx(np.sqrt(np.mean((by_hand - W) ** 2)))


def test_a_picture_file_of_the_user_is_read_and_shrunk(tmp_path):
    from matplotlib.image import imsave

    path = str(tmp_path / "mine.png")
    imsave(path, np.random.default_rng(0).random((60, 90, 3)))
    assert images.read_image(path, max_side=30).shape == (20, 30, 3)
    imsave(path, np.linspace(0, 1, 24).reshape(4, 6), cmap="gray")
    picture = images.read_image(path)
    assert picture.shape == (4, 6, 3)
    assert picture.min() >= 0
    assert picture.max() <= 1
    rows = images.table(tiny_images(images=(path,), n_trials=1))
    assert {r["image"] for r in rows} == {"mine"}
    # Ranks that the picture cannot have are left out.
    assert ("rows", "LRR", "8") not in {(r["task"], r["method"], r["rank"]) for r in rows}


def test_a_file_that_is_no_picture_is_refused(tmp_path):
    path = tmp_path / "no.png"
    path.write_text("words")
    with pytest.raises(ValueError, match="cannot be read as a picture"):
        images.read_image(str(path))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        images.read_image("nowhere.png")


# ---------------------------------------------------------------- runtime


def test_runtime_times_every_method_at_every_size():
    rows = runtime.table(tiny_runtime())
    times = runtime.medians(rows)
    assert set(times) == {"4 x 3 x 3", "3 x 5 x 4"}
    assert all(len(methods) == 6 for methods in times.values())
    assert all(r["seconds"] > 0 for r in rows)


# ---------------------------------------------------------------- meteo


@pytest.fixture(scope="module")
def windows():
    """A season of period 12 at two stations with three variables, and a little noise."""
    rng = np.random.default_rng(0)
    months = np.arange(120)
    season = np.sin(2 * np.pi * months / 12)[:, None, None] * rng.normal(size=(2, 3))
    data = 10 * season + rng.normal(size=(120, 2, 3))
    starts = np.arange(2, 118)
    X = np.stack([data[t - 2 : t].ravel() for t in starts])
    Y = np.stack([data[t : t + 2] for t in starts])
    order = rng.permutation(len(starts))
    return Windows(X, Y, starts, test=order[:20], valid=order[20:40], train=order[40:90])


def test_climatology_is_the_mean_of_the_known_months(windows):
    months = {}
    for i in windows.known:
        past = windows.X[i].reshape(2, 2, 3)
        for j, value in enumerate([*past, *windows.Y[i]]):
            months[windows.first[i] - 2 + j] = value
    expected = np.mean([v for m, v in months.items() if m % 12 == 7], axis=0)
    np.testing.assert_allclose(climatology(windows)[7], expected)


@pytest.mark.filterwarnings("ignore:The best penalty")
@pytest.mark.parametrize("group", METHODS)
def test_every_group_of_methods_predicts_the_season(windows, group):
    truth = windows.Y[windows.test]
    for forecast in METHODS[group](windows).values():
        assert forecast.predicted.shape == truth.shape
        assert np.sqrt(np.mean((forecast.predicted - truth) ** 2)) < 0.6 * truth.std()
        assert (forecast.at_edge is None) == (group == "climatology")


@pytest.mark.filterwarnings("ignore:The best penalty")
def test_protocol_fits_to_the_training_windows_alone(windows):
    """By hand: the least validation error of all penalties and ranks, no refit."""
    train, valid, test = windows.train, windows.valid, windows.test
    best = (np.inf, None)
    ranks = [(a, b, c, d) for a in range(1, 13) for b in (1, 2) for c in (1, 2) for d in (1, 2, 3)]
    for alpha in ALPHAS[-2:]:
        for rank in ranks:
            model = HOLRR(rank, alpha, subspaces="response", fit_intercept=False)
            model.fit(windows.X[train], windows.Y[train])
            error = np.mean((model.predict(windows.X[valid]) - windows.Y[valid]) ** 2)
            if error < best[0]:
                best = (error, model.predict(windows.X[test]))
    found = by_validation(HOLRRCV(ALPHAS[-2:], subspaces="response", selection="min"), windows)
    assert found.error == pytest.approx(best[0])
    np.testing.assert_allclose(found.predicted, best[1], atol=1e-8)


@pytest.mark.filterwarnings("ignore:The best penalty")
def test_a_search_that_ends_on_an_edge_of_its_grid_is_detected(windows):
    """By the penalty, from above and from below, or by the width of the kernel."""
    search = RLSCV([1e-3, 1e2, 1e7])
    assert not by_validation(search, windows).at_edge
    assert search.alpha_ == 1e2
    assert by_validation(RLSCV([1e2, 1e7]), windows).at_edge
    assert by_validation(RLSCV([1e-3, 1e2]), windows).at_edge
    widths = [{"kernel": "rbf", "gamma": g} for g in (1e-9, 1e-3, 1e3)]
    grid = 10.0 ** np.arange(-8, 5)
    for kernels, edge in ((widths, False), (widths[1:], True), (widths[1:2], False)):
        search = KernelRLSCV(grid, kernels=kernels, center_kernel=False)
        assert by_validation(search, windows).at_edge == edge
        assert search.best_estimator_.gamma == 1e-3
    assert by_validation(TraceNormRegressionCV([1e-3, 1e-2], tol=1e-3), windows).at_edge


def test_the_summary_counts_searches_on_an_edge_before_and_after_a_file(tmp_path):
    common = {"k": 1, "n_train": 50}
    rows = [
        {**common, "split": 0, "kernel": "linear", "method": "RLS", "rmse": 1.0, "at_edge": 1},
        {**common, "split": 1, "kernel": "linear", "method": "RLS", "rmse": 3.0, "at_edge": 1},
        {**common, "split": 0, "kernel": "rbf", "method": "RLS", "rmse": 1.0, "at_edge": 0},
        {**common, "split": 0, "kernel": "c", "method": "C", "rmse": 1.0, "at_edge": None},
    ]
    (tmp_path / "t.csv").write_text(to_csv(rows))
    for table in (rows, read_csv(tmp_path / "t.csv")):
        found = meteo.summary(table)
        assert [(r["mean"], r["n"], r["at_edge"]) for r in found] == [
            (2.0, 2, 2),
            (1.0, 1, 0),
            (1.0, 1, None),
        ]


def test_products_on_the_sphere_are_the_normalised_polynomial_kernel():
    X = np.random.default_rng(0).normal(size=(4, 3))
    S = on_sphere(X, 1.0)
    K = (X @ X.T + 1) ** 3
    np.testing.assert_allclose((S @ S.T) ** 3, K / np.sqrt(np.outer(K.diagonal(), K.diagonal())))


def test_meteo_on_the_real_files(meteo_dir):
    config = tiny_meteo(meteo_dir)
    rows = meteo.table(config)
    data, months = meteo.load_weather(str(meteo_dir))
    assert data.shape == (492, 16, 5)
    assert len(months) == 492
    np.testing.assert_allclose(data.mean(axis=(0, 1)), 0, atol=1e-12)
    assert {r["method"] for r in rows if r["kernel"] == "linear"} == {
        "RLS",
        "LRR",
        "HOLRR",
        "Trace norm",
    }
    assert all(0.3 < r["rmse"] < 1 for r in rows)
    # With the paper's penalties the linear searches end at 10, and more would have been better.
    found = {(r["kernel"], r["method"]): r for r in meteo.summary(rows) if r["k"] == 1}
    for method in ("RLS", "LRR", "HOLRR"):
        narrow, wide = found["linear", method], found["linear, wide", method]
        assert (narrow["at_edge"], wide["at_edge"]) == (narrow["n"], 0)
        assert wide["mean"] < narrow["mean"] - 0.01


def test_splits_are_disjoint_and_nested_in_size(meteo_dir):
    config = tiny_meteo(meteo_dir)
    small, large = (meteo.draw_split(config, 3, n, 0) for n in (50, 100))
    np.testing.assert_array_equal(small.test, large.test)
    np.testing.assert_array_equal(small.train, large.train[:50])
    parts = [set(p.tolist()) for p in (large.test, large.valid, large.train)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 170


def test_the_papers_table_has_its_sixty_numbers():
    assert sum(len(cell) for cell in TABLE_2.values()) == 60
    assert min(TABLE_2[1, 100].values()) == TABLE_2[1, 100]["rbf", "HOLRR"] == 0.5808
