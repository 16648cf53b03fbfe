"""Missing outputs and weights of outputs in the public estimators."""

from __future__ import annotations

import io as streams
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score

from holrr import HOLRR, LRR, RLS, load
from holrr.metrics import r2
from problems import assert_same_state, low_rank_tensor, toy, with_missing

MODELS = [RLS(), LRR(rank=2), HOLRR(rank=2), HOLRR(rank=(2, None, 2)), HOLRR(rank=0.9)]


def never(Y):
    Y = with_missing(Y, 0.2)
    Y[:, 2, 1] = Y[:, 0, 3] = np.nan
    return Y


# ---------------------------------------------------------------- complete outputs


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_complete_outputs_give_bitwise_the_same_fit(model):
    X, Y = toy()
    plain = clone(model).fit(X, Y)
    ignoring = clone(model).set_params(missing="ignore").fit(X, Y)
    assert_array_equal(ignoring.coef_, plain.coef_)
    assert_array_equal(ignoring.intercept_, plain.intercept_)
    assert ignoring.objective_ == plain.objective_
    assert ignoring.score(X, Y) == plain.score(X, Y)
    assert ignoring.n_dropped_ == 0
    assert ignoring.n_iter_ == 1


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_samples_without_observed_outputs_are_dropped(model):
    X, Y = toy()
    short = clone(model).fit(np.delete(X, [4, 9], axis=0), np.delete(Y, [4, 9], axis=0))
    Y[[4, 9]] = np.nan
    found = clone(model).set_params(missing="ignore").fit(X, Y)
    assert found.n_dropped_ == 2
    assert_array_equal(found.coef_, short.coef_)
    some = clone(model).set_params(missing="ignore").fit(X, with_missing(Y, 0.2))
    assert some.n_dropped_ == 2
    assert np.isfinite(some.predict(X)).all()


def test_dropped_samples_are_counted_with_blocks_and_refinement():
    X, Y = toy()
    Y[[4, 9]] = np.nan
    half = X.shape[1] // 2
    blocks = {"a": list(range(half)), "b": list(range(half, X.shape[1]))}
    how = {"blocks": blocks, "alpha": {"a": 0.5, "b": 0.1}, "refine": True}
    assert HOLRR(2, missing="ignore", **how).fit(X, Y).n_dropped_ == 2


def test_missing_scalar_targets_are_dropped():
    X, y = toy(shape=())
    y[[3, 7]] = np.nan
    seen = ~np.isnan(y)
    found = RLS(missing="ignore").fit(X, y)
    assert_array_equal(found.coef_, RLS().fit(X[seen], y[seen]).coef_)
    assert found.score(X, y) == RLS().fit(X[seen], y[seen]).score(X[seen], y[seen])


# ---------------------------------------------------------------- statistics


def test_error_with_noise_grows_no_more_than_the_number_of_entries_falls():
    """With 30 percent fewer entries alone the error grows by a factor of 1 / sqrt(0.7) = 1.2."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(150, 10))
        F = np.tensordot(X, low_rank_tensor(rng, (10, 10, 10, 10), (3, 3, 2, 2)), 1)
        F /= F.std()
        Y = F + rng.normal(size=F.shape)
        missing = with_missing(Y, 0.3, seed)

        def error(model, Y, X=X, F=F):
            return np.sqrt(np.mean((model.fit(X, Y).predict(X) - F) ** 2))

        found = error(HOLRR((3, 3, 2, 2), alpha=0.1, missing="ignore"), missing)
        means = np.where(np.isnan(missing), np.nanmean(missing, axis=0), missing)
        assert found < 1.3 * error(HOLRR((3, 3, 2, 2), alpha=0.1), Y)
        assert found < 0.5 * error(HOLRR((3, 3, 2, 2), alpha=0.1), means)
        assert found < 0.5 * error(RLS(alpha=0.1, missing="ignore"), missing)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_integer_weights_equal_repeated_samples_with_missing_outputs(model):
    X, Y = toy()
    Y = with_missing(Y, 0.3)
    w = np.random.default_rng(0).integers(0, 3, len(X))
    if getattr(model, "max_iter", None):
        model = clone(model).set_params(tol=1e-14, max_iter=2000)
    model = clone(model).set_params(missing="ignore")
    once = clone(model).fit(X, Y, w)
    again = clone(model).fit(np.repeat(X, w, axis=0), np.repeat(Y, w, axis=0))
    assert_allclose(once.predict(X), again.predict(X), atol=2e-3)
    assert_allclose(once.objective_, again.objective_, rtol=1e-5)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_units_of_outputs_with_missing_entries_do_not_matter(model):
    X, Y = toy()
    Y = with_missing(Y, 0.3)
    model = clone(model).set_params(missing="ignore")
    expected = clone(model).fit(X, Y).predict(X)
    for unit in (2.0**-600, 2.0**600):
        assert_allclose(clone(model).fit(X, Y * unit).predict(X) / unit, expected, rtol=1e-9)


# ---------------------------------------------------------------- masks, scores, files


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_masked_entries_are_missing_whatever_their_value(model):
    X, Y = toy()
    Y = np.round(10 * Y)
    missing = with_missing(Y, 0.3)
    masked = np.ma.masked_array(Y.astype(int), mask=np.isnan(missing))
    assert (np.ma.getdata(masked) == Y).all()
    model = clone(model).set_params(missing="ignore")
    found = clone(model).fit(X, masked)
    assert_array_equal(found.coef_, clone(model).fit(X, missing).coef_)
    assert found.score(X, masked) == found.score(X, missing)


def test_scores_leave_out_missing_entries():
    X, Y = toy()
    Y = never(Y)
    Y[:, 0, 0], Y[1, 0, 0] = np.nan, 1.0  # one entry has no R2
    w = np.random.default_rng(0).uniform(size=len(X))
    model = HOLRR(2, missing="ignore").fit(X, Y)
    P, each, spread = model.predict(X), [], []
    for i, j in np.ndindex(3, 4):
        seen = ~np.isnan(Y[:, i, j])
        if seen.sum() > 1:
            y, v = Y[seen, i, j], w[seen]
            each.append(r2_score(y, P[seen, i, j], sample_weight=v))
            spread.append(v @ np.square(y - np.average(y, weights=v)))
    assert len(each) == 9
    assert_allclose(model.score(X, Y, w), np.average(each, weights=spread), rtol=1e-12)
    assert_allclose(r2(Y, P, sample_weight=w, average="uniform"), np.mean(each), rtol=1e-12)
    complete = toy()[1]
    known = ~np.isnan(model.intercept_)
    flat = complete[:, known], P[:, known]
    scores = r2_score(*flat, multioutput="variance_weighted")
    assert_allclose(model.score(X, complete), scores, rtol=1e-12)
    assert_allclose(r2(complete, P, average="uniform"), r2_score(*flat), rtol=1e-12)


def test_scores_of_data_on_disk_leave_out_missing_entries(tmp_path):
    from holrr.streaming import memory_budget
    from problems import on_disk

    X, Y = toy(200)
    Y = with_missing(Y, 0.3)
    model = RLS(missing="ignore").fit(X, Y)
    with memory_budget(20_000):
        found = model.score(on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y))
    assert_allclose(found, model.score(X, Y), rtol=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_files_clones_and_pickles_keep_fits_to_missing_outputs(model, tmp_path):
    X, Y = toy()
    model = clone(model).set_params(missing="ignore", output_weight=[[1.0, 2.0, 0.5], None])
    fitted = clone(model).fit(X, never(Y))
    fitted.save(tmp_path / "model.holrr")
    assert_same_state(load(tmp_path / "model.holrr"), fitted)
    assert_same_state(pickle.load(streams.BytesIO(pickle.dumps(fitted))), fitted)
    assert clone(fitted).get_params() == model.get_params()


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_nan_raises_an_error_that_names_the_parameter_missing(model):
    X, Y = toy()
    Y[7, 1, 2] = np.nan
    for y in (Y, np.ma.masked_invalid(Y)):
        for fit in (clone(model).fit, clone(model).partial_fit):
            with pytest.raises(ValueError, match=r'at index \(7, 1, 2\).*missing="ignore"'):
                fit(X, y)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_infinity_raises_with_missing_ignore(model):
    X, Y = toy()
    Y[7, 1, 2], Y[3, 0, 0] = np.inf, np.nan
    Y[1] = np.nan  # dropped, which moves no index
    with pytest.raises(ValueError, match=r"y contains infinity at index \(7, 1, 2\)") as error:
        clone(model).set_params(missing="ignore").fit(X, Y)
    assert "missing" not in str(error.value)
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN at index \(2, 1\)") as error:
        clone(model).set_params(missing="ignore").fit(X, toy()[1])
    assert "missing" not in str(error.value)


def test_no_observed_entry_and_no_weight_raise():
    X, Y = toy()
    model = HOLRR(missing="ignore")
    with pytest.raises(ValueError, match="no observed entry"):
        model.fit(X, np.full_like(Y, np.nan))
    Y[:20] = np.nan
    with pytest.raises(ValueError, match="sample_weight is zero for every sample"):
        model.fit(X, Y, np.arange(40) < 20)
    assert not hasattr(model, "tucker_")


def test_batches_and_data_on_disk_with_missing_outputs_raise(tmp_path):
    from holrr.streaming import memory_budget
    from problems import on_disk

    X, Y = toy(200)
    missing, model = with_missing(Y, 0.2), HOLRR(2, missing="ignore")
    with pytest.raises(ValueError, match=r"y contains NaN.*arrays in memory"):
        model.partial_fit(X, missing)
    one = Y.copy()
    one[3], one[5, 0, 1] = np.nan, np.nan  # a sample that is dropped, and a missing entry
    with pytest.raises(ValueError, match=r"NaN .* at index \(5, 0, 1\)"):
        model.partial_fit(X, one)
    with memory_budget(20_000), pytest.raises(ValueError, match=r"NaN.*arrays in memory"):
        model.fit(on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", missing))
    weighted = HOLRR(2, output_weight=[[1, 2, 3], None])
    with pytest.raises(ValueError, match=r"output_weight needs samples and .* with moments"):
        weighted.partial_fit(X, Y)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_batches_may_all_lack_the_same_outputs(model):
    X, Y = toy(60)
    rest = np.delete(Y, 7, axis=0)[:, :, [0, 1, 3]]
    alone = clone(model).fit(np.delete(X, 7, axis=0), rest)
    Y[:, :, 2] = Y[7] = np.nan
    model = clone(model).set_params(missing="ignore")
    batched = clone(model).partial_fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:])
    assert np.isnan(batched.predict(X)[:, :, 2]).all()
    assert_allclose(batched.predict(X)[:, :, [0, 1, 3]], alone.predict(X), atol=1e-8)
    assert_allclose(batched.objective_, alone.objective_, rtol=1e-8)
    before = vars(batched).copy()
    for other in (toy(30)[1], np.where(np.arange(4) == 3, np.nan, toy(30)[1])):
        with pytest.raises(ValueError, match="must lack the same outputs"):
            batched.partial_fit(X[:30], other)
    assert vars(batched) == before


def test_other_libraries_and_response_subspaces_with_missing_outputs_raise():
    X, Y = toy()
    missing = with_missing(Y, 0.2)
    with pytest.raises(ValueError, match="subspaces='response'"):
        HOLRR(2, subspaces="response", missing="ignore").fit(X, missing)
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(TypeError, match="needs NumPy arrays"):
        RLS(missing="ignore").fit(torch.asarray(X), torch.asarray(missing))
    model = RLS(missing="ignore").fit(torch.asarray(X), torch.asarray(Y))
    assert_allclose(model.coef_.numpy(), RLS().fit(X, Y).coef_, atol=1e-12)


def test_too_few_rounds_warn():
    X, Y = toy()
    with pytest.warns(ConvergenceWarning, match="not converge in 2 rounds.*max_iter"):
        HOLRR(2, max_iter=2, missing="ignore").fit(X, with_missing(Y, 0.4))


# ---------------------------------------------------------------- weights of outputs

WEIGHTS = [np.array([1.0, 4.0, 0.25]), np.array([2.0, 1.0, 0.5, 3.0])]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_output_weights_equal_scaled_outputs(model, share):
    X, Y = toy()
    Y = with_missing(Y, share)
    root = np.sqrt(np.multiply.outer(*WEIGHTS))
    model = clone(model).set_params(missing="ignore")
    scaled = clone(model).fit(X, Y * root)
    for given in (WEIGHTS, np.multiply.outer(*WEIGHTS), 7 * np.multiply.outer(*WEIGHTS)):
        found = clone(model).set_params(output_weight=given).fit(X, Y)
        assert_allclose(found.predict(X), scaled.predict(X) / root, atol=1e-8)
        assert_allclose(found.coef_, scaled.coef_ / root, atol=1e-8)
    mean = np.multiply.outer(*WEIGHTS).mean()
    assert_allclose(found.objective_ * mean, scaled.objective_, rtol=1e-8)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_outputs_without_weight_have_no_influence(model):
    X, Y = toy()
    weights = [None, [1.0, 0.0, 2.0, 1.0]]
    model = clone(model).set_params(output_weight=weights)
    found = clone(model).fit(X, Y)
    Y[:, :, 1] = np.nan  # although missing outputs are an error
    again = clone(model).fit(X, Y)
    assert_array_equal(found.predict(X), again.predict(X))
    assert np.isnan(found.predict(X)[:, :, 1]).all()
    rest = [0, 2, 3]
    assert np.isfinite(found.coef_[:, :, rest]).all()
    without = clone(model).set_params(output_weight=[None, [1.0, 2.0, 1.0]])
    if not isinstance(model, HOLRR):
        alone = without.fit(X, Y[:, :, rest])
        assert_allclose(found.predict(X)[:, :, rest], alone.predict(X), atol=1e-9)
        assert_allclose(found.score(X, toy()[1]), alone.score(X, Y[:, :, rest]))


def test_output_weights_that_are_no_product_raise():
    X, Y = toy()
    with pytest.raises(ValueError, match="must be a product over the output modes"):
        HOLRR(2, output_weight=np.arange(1.0, 13).reshape(3, 4)).fit(X, Y)
    with pytest.raises(ValueError, match=r"output_weight\[1\] must have shape \(4,\)"):
        HOLRR(2, output_weight=[None, [1.0, 2.0]]).fit(X, Y)
    with pytest.raises(ValueError, match="scalar targets"):
        RLS(output_weight=[1.0]).fit(X, Y[:, 0, 0])
