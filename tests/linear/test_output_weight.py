"""`output_weight` of linear estimators: weights of single modes, and outputs that are left out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import KFold

from holrr import HOLRR, HOLRRCV, LRR, RLS, RLSCV
from problems import toy, with_missing

pytestmark = pytest.mark.filterwarnings(
    "ignore:The best penalty", "ignore::sklearn.exceptions.ConvergenceWarning"
)

MODELS = [RLS(), LRR(2), HOLRR(2), HOLRR(2, refine=True), RLSCV([0.1, 1.0], cv=3)]
MODELS += [HOLRRCV([0.1, 1.0], cv=3, selection="min", max_rank=2)]
AREA = np.array([1.0, 3.0, 0.5, 2.0])
# Land: neither whole rows nor whole columns of sea.
LAND = np.ones((4, 5), dtype=bool)
LAND[1, 2:4] = LAND[2, 3] = False


def data(share=0.0):
    X, Y = toy(n=60, shape=(4, 5))
    return X, with_missing(Y, share) if share else Y


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_weights_times_a_mask_of_never_observed_outputs_equal_the_weights(model, share):
    X, Y = data(share)
    Y = np.where(LAND, Y, np.nan)
    model = clone(model).set_params(missing="ignore")
    expected = clone(model).set_params(output_weight=[AREA, None]).fit(X, Y)
    for nothing in (np.nan,) if share else (0.0, np.nan):
        weights = np.where(LAND, AREA[:, None], nothing)
        found = clone(model).set_params(output_weight=weights).fit(X, Y)
        assert_allclose(found.predict(X), expected.predict(X), atol=1e-7)
        assert_array_equal(np.isnan(found.predict(X)[0]), ~LAND)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_observed_outputs_of_weight_zero_are_left_out_as_missing_ones(model):
    X, Y = data()
    weights = np.where(LAND, AREA[:, None], 0.0)
    model = clone(model).set_params(missing="ignore", output_weight=weights)
    found = clone(model).fit(X, Y)
    expected = clone(model).fit(X, np.where(LAND, Y, np.nan))
    assert_array_equal(found.predict(X), expected.predict(X))


def test_outputs_without_weight_that_are_no_slices_need_missing_outputs():
    X, Y = data()
    weights = np.where(LAND, AREA[:, None], 0.0)
    for model in (HOLRR(2, output_weight=weights), HOLRRCV([1.0], cv=2, output_weight=weights)):
        with pytest.raises(ValueError, match=r'zero for 3 outputs .* \(1, 2\).*missing="ignore"'):
            model.fit(X, Y)
        assert not hasattr(model, "tucker_")


def test_observed_outputs_must_have_a_known_weight():
    X, Y = data()
    weights = np.where(LAND, AREA[:, None], np.nan)
    Y[:, 1, 2:4] = np.nan
    model = HOLRR(2, missing="ignore", output_weight=weights)
    with pytest.raises(ValueError, match=r"NaN for output \(2, 3\), which is observed in y"):
        model.fit(X, Y)


def test_a_vector_for_several_modes_is_refused_with_the_way_to_give_it():
    X, Y = data()
    with pytest.raises(ValueError, match=r"got \(4,\). To weight single modes, pass a list"):
        HOLRR(2, output_weight=AREA).fit(X, Y)


def test_the_weight_of_a_dimension_names_its_mode():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = data()
    y = xr.DataArray(Y, dims=("time", "latitude", "longitude"), coords={"latitude": range(4)})
    area = xr.DataArray(AREA, dims="latitude", coords={"latitude": range(4)})
    land = xr.DataArray(LAND, dims=("latitude", "longitude"))
    expected = HOLRR(2, output_weight=[AREA, None]).fit(X, Y)
    assert_array_equal(HOLRR(2, output_weight=area).fit(X, y).coef_, expected.coef_)
    dataset = y.to_dataset("longitude")  # (variable, latitude)
    turned = HOLRR(2, output_weight=[None, AREA]).fit(X, np.swapaxes(Y, 1, 2))
    assert_array_equal(HOLRR(2, output_weight=area).fit(X, dataset).coef_, turned.coef_)
    sea = y.where(land)
    expected = HOLRR(2, missing="ignore", output_weight=area).fit(X, sea)
    for given in (area * sea.notnull().any("time"), (land * area).where(land)):
        model = HOLRR(2, missing="ignore", output_weight=given).fit(X, sea)
        assert_allclose(model.predict(X), expected.predict(X), atol=1e-10)
    with pytest.raises(ValueError, match=r"has dimensions \('lat',\), but y has \('latitude', 'l"):
        HOLRR(2, output_weight=area.rename(latitude="lat")).fit(X, y)
    with pytest.raises(ValueError, match="has 3 entries along 'latitude', but y has 4"):
        HOLRR(2, output_weight=area[:3]).fit(X, y)


@pytest.mark.parametrize("selection", ["stack", "min"])
def test_the_unweighted_error_is_that_of_the_held_out_predictions(selection):
    X, Y = toy(40, noise=3.0)
    weights = [np.array([1.0, 4.0, 0.5]), None]
    model = HOLRRCV(
        [0.1, 1.0, 10.0],
        cv=KFold(4),
        selection=selection,
        output_weight=weights,
    ).fit(X, Y)
    squares = (Y - model.held_out_predictions(X, Y)) ** 2
    expected = np.mean([squares[test].mean() for _, test in KFold(4).split(X)])
    assert model.cv_results_["unweighted_mse"] == pytest.approx(expected, rel=1e-9)
    share = weights[0] / weights[0].mean()
    weighted = np.mean([(squares[test] * share[:, None]).mean() for _, test in KFold(4).split(X)])
    error = model.held_out_mse_ if selection == "stack" else -model.best_score_
    assert error == pytest.approx(weighted, rel=1e-9)
