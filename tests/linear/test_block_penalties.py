"""A penalty for each block of inputs, in single estimators."""

import numpy as np
import pytest
from himalaya.ridge import Ridge as HimalayaRidge
from sklearn.base import clone

from holrr import HOLRR, LRR, RLS, Moments, load, save

rng = np.random.default_rng(0)
BLOCKS = ["a"] * 4 + ["b"] * 6 + ["c"] * 5
ALPHA = {"a": 0.7, "b": 30.0, "c": 4.0}


def problem(n, d=15, offset=1.0):
    X = rng.normal(size=(n, d)) + offset
    return X, np.tensordot(X, rng.normal(size=(d, 4, 3)), 1) + rng.normal(size=(n, 4, 3))


def direct(X, Y, penalties, w=None, fit_intercept=True):
    """Coefficients and intercept from the normal equations."""
    w = np.ones(len(X)) if w is None else w
    Y = Y.reshape(len(Y), -1)
    mean_x, mean_y = (w @ A / w.sum() if fit_intercept else 0 * A[0] for A in (X, Y))
    Xc, Yc = X - mean_x, Y - mean_y
    W = np.linalg.solve(Xc.T @ (w[:, None] * Xc) + np.diag(penalties), Xc.T @ (w[:, None] * Yc))
    return W, mean_y - mean_x @ W


def penalties_of(alpha):
    return np.array([alpha[b] for b in BLOCKS])


@pytest.mark.parametrize("n", [60, 9], ids=["tall", "wide"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("solver", ["auto", "cholesky", "svd"])
def test_fixed_penalties_equal_a_direct_solve(n, fit_intercept, solver, use_solver):
    use_solver(solver)
    X, Y = problem(n)
    w = rng.integers(1, 4, n).astype(float)
    model = RLS(ALPHA, blocks=BLOCKS, fit_intercept=fit_intercept).fit(X, Y, w)
    W, b = direct(X, Y, penalties_of(ALPHA), w, fit_intercept)
    np.testing.assert_allclose(model.coef_.reshape(15, -1), W, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.intercept_.ravel(), b, rtol=0, atol=1e-8)


def test_fixed_penalties_equal_himalaya_on_scaled_inputs():
    X, Y = problem(60, offset=0.0)
    root = np.sqrt(penalties_of(ALPHA))
    theirs = HimalayaRidge(alpha=1.0, fit_intercept=True).fit(X / root, Y.reshape(60, -1))
    ours = RLS(ALPHA, blocks=BLOCKS).fit(X, Y)
    np.testing.assert_allclose(
        ours.predict(X).reshape(60, -1), theirs.predict(X / root), rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("zero", [{"a": 0.0}, {"a": 0.0, "c": 0.0}, {"b": 0.0, "a": np.inf}])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_blocks_without_a_penalty_equal_a_direct_solve(zero, fit_intercept):
    X, Y = problem(60)
    w = rng.integers(1, 4, 60).astype(float)
    alpha = {**ALPHA, **zero}
    model = RLS(alpha, blocks=BLOCKS, fit_intercept=fit_intercept).fit(X, Y, w)
    used = np.isfinite(penalties_of(alpha))
    W, _ = direct(X[:, used], Y, penalties_of(alpha)[used], w, fit_intercept)
    np.testing.assert_allclose(model.coef_.reshape(15, -1)[used], W, rtol=0, atol=1e-9)
    assert not model.coef_[~used].any()


@pytest.mark.parametrize("model", [RLS(), LRR(2), HOLRR((2, 2, 2))], ids=str)
def test_a_vanishing_penalty_is_none_in_the_limit(model):
    X, Y = problem(60)
    model = clone(model).set_params(blocks=BLOCKS)
    none = model.set_params(alpha={**ALPHA, "a": 0.0}).fit(X, Y)
    noise, std = none.noise_, none.predict(X, return_std=True)[1]
    if isinstance(model, RLS):  # where ranks are low, inputs without a penalty are not reduced
        little = RLS({**ALPHA, "a": 1e-9}, blocks=BLOCKS).fit(X, Y)
        np.testing.assert_allclose(none.predict(X), little.predict(X), atol=1e-7)
        np.testing.assert_allclose(noise, little.noise_, rtol=1e-6)
        np.testing.assert_allclose(std, little.predict(X, return_std=True)[1], rtol=1e-6)
        assert none.objective_ == pytest.approx(little.objective_, rel=1e-6)
    residual = Y - none.predict(X)
    # What is left has nothing to do with the inputs that are not shrunk.
    np.testing.assert_allclose(
        np.tensordot(X[:, :4] - X[:, :4].mean(0), residual, (0, 0)), 0, atol=1e-9
    )


@pytest.mark.parametrize("model", [RLS(), LRR(2), HOLRR((2, 2, 2))], ids=str)
def test_equal_penalties_are_those_of_no_blocks(model):
    X, Y = problem(40)
    model = clone(model)
    plain = model.set_params(alpha=3.0).fit(X, Y).predict(X)
    named = model.set_params(blocks=BLOCKS).fit(X, Y)
    np.testing.assert_array_equal(named.predict(X), plain)  # blocks alone change nothing
    assert named.block_alphas_ == {"a": 3.0, "b": 3.0, "c": 3.0}
    equal = model.set_params(alpha=dict.fromkeys("abc", 3.0)).fit(X, Y)
    np.testing.assert_allclose(equal.predict(X), plain, atol=1e-12)


@pytest.mark.parametrize("model", [RLS(), LRR(2), HOLRR((3, 2, 2))], ids=str)
def test_infinite_penalties_leave_blocks_out(model):
    X, Y = problem(40)
    model = clone(model).set_params(blocks=BLOCKS, alpha={**ALPHA, "b": np.inf}).fit(X, Y)
    assert not model.coef_[4:10].any()
    rest = np.r_[0:4, 10:15]
    alone = type(model)(**{**model.get_params(), "blocks": ["a"] * 4 + ["c"] * 5})
    alone = alone.set_params(alpha={"a": ALPHA["a"], "c": ALPHA["c"]}).fit(X[:, rest], Y)
    np.testing.assert_allclose(model.predict(X), alone.predict(X[:, rest]), atol=1e-11)
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-10)


@pytest.mark.parametrize("alpha", [ALPHA, {**ALPHA, "c": 0.0}], ids=["all", "none for c"])
@pytest.mark.parametrize("model", [RLS(), LRR(2), HOLRR((2, 2, 2))], ids=str)
def test_batches_moments_disk_and_dask_agree(model, alpha, tmp_path):
    da = pytest.importorskip("dask.array")
    X, Y = problem(60)
    model = clone(model).set_params(blocks=BLOCKS, alpha=alpha)
    wanted = model.fit(X, Y).predict(X)
    found = {"moments": model.fit_moments(Moments.from_arrays(X, Y)).predict(X)}
    batches = type(model)(**model.get_params())
    for k in range(3):
        batches.partial_fit(X[k::3], Y[k::3])
    found["batches"] = batches.predict(X)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Y.npy", Y)
    on_disk = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "XY")
    found["disk"] = model.fit(*on_disk).predict(X)
    chunks = da.from_array(X, chunks=(17, 15)), da.from_array(Y, chunks=(17, 4, 3))
    found["dask"] = model.fit(*chunks).predict(X)
    for name, values in found.items():
        np.testing.assert_allclose(values, wanted, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("alpha", [ALPHA, {**ALPHA, "c": 0.0}], ids=["all", "none for c"])
def test_units_and_weights(alpha):
    X, Y = problem(50)
    model = HOLRR((2, 2, 2), alpha, blocks=BLOCKS)
    wanted = model.fit(X, Y).predict(X)
    for unit in (1e-90, 1e90):
        scaled = {name: value * unit * unit for name, value in alpha.items()}
        found = HOLRR((2, 2, 2), scaled, blocks=BLOCKS).fit(X * unit, Y / unit).predict(X * unit)
        np.testing.assert_allclose(found * unit, wanted, rtol=1e-9)
    w = rng.integers(0, 3, 50)
    rows = np.repeat(np.arange(50), w)
    weighted, repeated = (HOLRR((2, 2, 2), alpha, blocks=BLOCKS) for _ in range(2))
    np.testing.assert_allclose(
        weighted.fit(X, Y, w.astype(float)).predict(X),
        repeated.fit(X[rows], Y[rows]).predict(X),
        atol=1e-9,
    )


@pytest.mark.parametrize("alpha", [ALPHA, {**ALPHA, "c": 0.0}], ids=["all", "none for c"])
def test_files_and_torch(alpha, tmp_path):
    torch = pytest.importorskip("torch")
    X, Y = problem(40)
    model = HOLRR((2, 2, 2), alpha, blocks=BLOCKS).fit(X, Y)
    save(model, tmp_path / "model.holrr")
    same = load(tmp_path / "model.holrr")
    for one, other in zip(model.predict(X, True), same.predict(X, True), strict=True):
        np.testing.assert_array_equal(one, other)
    assert same.block_alphas_ == model.block_alphas_
    tensors = torch.tensor(X), torch.tensor(Y)
    found = HOLRR((2, 2, 2), alpha, blocks=BLOCKS).fit(*tensors)
    for one, other in zip(found.predict(tensors[0], True), model.predict(X, True), strict=True):
        np.testing.assert_allclose(one.numpy(), other, atol=1e-9)


def test_missing_outputs():
    X, Y = problem(60)
    Y[rng.random(Y.shape) < 0.2] = np.nan
    model = RLS(ALPHA, blocks=BLOCKS, missing="ignore").fit(X, Y)
    for j in np.ndindex(4, 3):
        seen = ~np.isnan(Y[:, *j])
        W, _ = direct(X[seen], Y[seen][:, *j][:, None], penalties_of(ALPHA))
        np.testing.assert_allclose(model.coef_[:, *j], W[:, 0], atol=1e-7)


@pytest.mark.parametrize(
    "model",
    [RLS(ALPHA, blocks=BLOCKS), HOLRR(2, input_shape=(5, 3), input_rank=(2, 2))],
    ids=["blocks", "input ranks"],
)
def test_samples_without_outputs_have_no_influence(model):
    X, Y = problem(60)
    model = clone(model).set_params(missing="ignore")
    wanted = clone(model).fit(X[7:], Y[7:]).predict(X)
    Y[:7] = np.nan
    found = model.fit(X, Y)
    np.testing.assert_array_equal(found.predict(X), wanted)
    assert found.n_dropped_ == 7


def test_errors_name_what_an_alpha_of_zero_does_not_support():
    X, Y = problem(60)
    alpha = {**ALPHA, "a": 0.0}
    with pytest.raises(ValueError, match="subspaces='response'"):
        HOLRR(2, alpha, blocks=BLOCKS, subspaces="response").fit(X, Y)
    Y[:, 0, 0] = np.nan
    with pytest.raises(ValueError, match="alpha=0 for a block of inputs needs complete outputs"):
        RLS(alpha, blocks=BLOCKS, missing="ignore").fit(X, Y)
    with pytest.raises(
        ValueError, match="alpha=0 for a block cannot be used if some outputs are never observed"
    ):
        RLS(alpha, blocks=BLOCKS, missing="ignore").partial_fit(X, Y)


def test_inputs_without_a_penalty_are_not_reduced_whatever_the_others_have():
    X, Y = problem(60)
    ranks = [
        np.linalg.matrix_rank(
            HOLRR(1, {"a": 0.0, "b": other, "c": other}, blocks=BLOCKS)
            .fit(X, Y)
            .coef_.reshape(15, -1),
            tol=1e-6,
        )
        for other in (1e12, np.inf)
    ]
    assert ranks == [4, 4]


def test_penalties_go_with_input_ranks_and_weights():
    X, Y = problem(60)
    model = HOLRR(None, {"0": 1.0, "1": 9.0, "2": 4.0}, input_shape=(5, 3), input_rank=(2, 3))
    model = clone(model).set_params(blocks=[[0, 3, 6, 9, 12], [1, 4, 7, 10, 13], [2, 5, 8, 11, 14]])
    found = model.fit(X, Y)
    assert found.input_rank_ == (2, 3)
    root = np.sqrt(np.tile([1.0, 9.0, 4.0], 5))
    common = 36 ** (1 / 3)
    scaled = X * np.sqrt(common) / root
    plain = HOLRR(None, common, input_shape=(5, 3), input_rank=(2, 3)).fit(scaled, Y)
    np.testing.assert_allclose(found.predict(X), plain.predict(scaled), atol=1e-10)
