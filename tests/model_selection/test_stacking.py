"""Stacks of searches: the final model is the mixture of separate fits, for all kinds of data."""

from __future__ import annotations

import numpy as np
import pytest
from naive_choice import mixture
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import KFold

import holrr
from holrr import (
    HOLRR,
    HOLRRCV,
    LRR,
    LRRCV,
    RLS,
    KernelHOLRR,
    KernelHOLRRCV,
    KernelLRR,
    KernelLRRCV,
    KernelRLS,
    Moments,
)
from holrr.datasets import make_tensor_regression
from problems import toy

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

ALPHAS = np.logspace(-1, 3, 5)
PLAIN = {HOLRRCV: HOLRR, LRRCV: LRR, KernelHOLRRCV: KernelHOLRR, KernelLRRCV: KernelLRR}
FULL = {HOLRRCV: RLS, LRRCV: RLS, KernelHOLRRCV: KernelRLS, KernelLRRCV: KernelRLS}


def noisy(n, d0, shape, seed=0):
    """A decaying spectrum and much noise, so that many ranks are mixed."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d0))
    W = rng.normal(size=(d0, *shape)) * 0.7 ** np.arange(d0).reshape(-1, *[1] * len(shape))
    for mode, d in enumerate(shape):
        W = W * (0.9 ** np.arange(d)).reshape([-1 if i == mode + 1 else 1 for i in range(W.ndim)])
    return X, np.tensordot(X, W, 1) + 1.5 * rng.normal(size=(n, *shape))


SHAPES = [(30, 5, (4,)), (30, 5, (3, 4)), (30, 5, (65, 2)), (40, 4, (120, 3)), (40, 4, (300,)),
          (12, 20, (3, 4)), (12, 20, (65, 2)), (30, 4, (3, 2, 3)), (40, 4, (80, 4))]  # fmt: skip


@pytest.mark.parametrize(("n", "d0", "shape"), SHAPES, ids=str)
@pytest.mark.parametrize(
    "model",
    [HOLRRCV(ALPHAS, cv=3), LRRCV(ALPHAS, cv=3)],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_final_model_is_the_mixture_of_separate_fits(model, n, d0, shape, weighted):
    X, Y = noisy(n, d0, shape)
    w = np.random.default_rng(1).uniform(0.2, 2, n) if weighted else None
    model = clone(model).set_params(selection="stack").fit(X, Y, w)
    assert_allclose(model.predict(X), mixture(model, X, Y, w), rtol=1e-9, atol=1e-9)
    assert (model.stack_weights_ > 0).all()
    assert model.stack_weights_.sum() <= 1 + 1e-12
    residual = model.predict(X) - Y
    squares = (residual**2).reshape(n, -1).sum(axis=1) @ (np.ones(n) if w is None else w)
    assert_allclose(model.objective_, squares + model.alpha_ * (model.coef_**2).sum(), rtol=1e-8)
    assert model.lower_bound_ <= model.objective_ * (1 + 1e-12)


@pytest.mark.parametrize("make", [KernelHOLRRCV, KernelLRRCV])
@pytest.mark.parametrize("more", [{}, {"landmarks": 8, "random_state": 0}], ids=str)
@pytest.mark.parametrize("shape", [(3, 4), (65, 2)], ids=str)
def test_the_final_kernel_model_is_the_mixture_of_separate_fits(make, more, shape):
    X, Y = noisy(30, 4, shape)
    model = make(ALPHAS / 100, gammas=[0.05, 0.5], cv=3, selection="stack", **more).fit(X, Y)
    assert_allclose(model.predict(X), mixture(model, X, Y), rtol=1e-7, atol=1e-7)
    assert model.gamma_ == model.best_estimator_.gamma


@pytest.mark.parametrize("make", PLAIN)
@pytest.mark.parametrize("seed", range(3))
def test_a_stack_and_its_best_single_model_have_the_same_best_index(make, seed):
    X, Y = noisy(25, 5, (4, 3), seed)
    stack, best = (make(ALPHAS, cv=4, selection=s).fit(X, Y) for s in ("stack", "min"))
    for name in ("best_index_", "best_score_", "best_params_", "ridge_mse_", "null_mse_"):
        assert getattr(stack, name) == getattr(best, name)
    assert best.rank_ == best.best_params_["rank"]
    assert best.alpha_ == best.best_params_["alpha"]
    if stack.choice_ != "ridge regression":
        assert stack.alpha_ == best.alpha_
    for alpha in stack.stack_alphas_:  # there is one penalty, besides those of single outputs
        assert set(np.ravel(alpha)) <= set(ALPHAS) if np.ndim(alpha) else alpha == stack.alpha_


def test_moments_of_the_folds_give_the_same_stack():
    X, Y = noisy(40, 5, (4, 3))
    whole = HOLRRCV(ALPHAS, cv=KFold(4), selection="stack").fit(X, Y)
    parts = [Moments.from_arrays(X[test], Y[test]) for _, test in KFold(4).split(X)]
    model = HOLRRCV(alphas=ALPHAS, selection="stack").fit_fold_moments(parts)
    assert model.stack_ranks_ == whole.stack_ranks_
    assert_allclose(model.predict(X), whole.predict(X), rtol=1e-8, atol=1e-9)


def test_a_stack_with_max_rank_mixes_smaller_ranks_at_one_penalty():
    X, Y = toy(30, noise=1.0, rank=1, shape=(4, 3))
    capped = HOLRRCV(ALPHAS, max_rank=(2, 3, 1), selection="stack").fit(X, Y)
    assert capped.choice_ == "ranks"
    assert None not in capped.stack_ranks_
    assert set(capped.stack_alphas_) == {capped.alpha_}
    assert capped.rank_ == capped.core_.shape
    assert all(R <= C for rank in capped.stack_ranks_ for R, C in zip(rank, (2, 3, 1), strict=True))
    assert all(R <= C for R, C in zip(capped.rank_, (2, 3, 1), strict=True))


def test_the_best_single_rank_is_chosen_where_ranks_cannot_be_mixed():
    X, Y = noisy(30, 5, (4, 3))
    stack, best = (HOLRRCV(ALPHAS, selection=s, refine=True).fit(X, Y) for s in ("auto", "min"))
    assert_allclose(stack.coef_, best.coef_)
    assert not hasattr(stack, "stack_ranks_")


@pytest.mark.parametrize("scale", [1e-170, 1e-20, 1e20, 1e160])
def test_the_stack_does_not_depend_on_the_scale_of_large_or_small_outputs(scale):
    X, Y = noisy(30, 5, (4, 3))
    plain, scaled = (HOLRRCV(ALPHAS, selection="stack").fit(X, Y * s) for s in (1.0, scale))
    assert scaled.stack_ranks_ == plain.stack_ranks_
    assert_allclose(scaled.predict(X) / scale, plain.predict(X), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_the_stack_does_not_depend_on_the_units_of_the_outputs(seed):
    """Units within the range of data that are not rescaled before the search."""
    X, Y = noisy(40, 8, (4, 5), seed=seed)
    search = HOLRRCV(ALPHAS, selection="stack", cv=3)
    expected, close = clone(search).fit(X, Y).predict(X), 1e-8 * np.abs(Y).max()
    for unit in (1e-60, 1e-30, 1e16, 1e30, 1e59):
        found = clone(search).fit(X, Y * unit).predict(X) / unit
        assert_allclose(found, expected, rtol=0, atol=close)


def test_blocks_that_are_the_same_model_are_the_smallest_of_them():
    """A rank above the product of the others adds rounding, which depends on units."""
    for seed in range(15):
        X, Y = noisy(30, 5, (4,), seed=seed)
        for unit in (1.0, 1e7, 1e21 / 3):
            model = HOLRRCV([0.1, 10.0], cv=3, selection="stack").fit(X, unit * Y)
            assert all(rank is None or rank[0] == rank[1] for rank in model.stack_ranks_)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_the_stack_does_not_depend_on_the_scale_of_the_inputs(scale):
    """The penalties are in the units of the data, which are divided by a power of two."""
    X, Y = noisy(30, 5, (4, 3))
    plain = HOLRRCV(ALPHAS, selection="stack").fit(X, Y)
    scaled = HOLRRCV(ALPHAS * scale * scale, selection="stack").fit(X * scale, Y)
    assert scaled.stack_ranks_ == plain.stack_ranks_
    assert_allclose(scaled.stack_weights_, plain.stack_weights_, rtol=1e-5)
    assert_allclose(scaled.predict(X * scale), plain.predict(X), rtol=1e-8, atol=1e-10)
    assert_allclose(scaled.alpha_ / scale / scale, plain.alpha_)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_errors_of_a_stack_are_in_the_units_of_the_data(scale):
    """The outputs are divided by a power of two before the search."""
    X, Y = noisy(30, 5, (4, 3))
    plain, scaled = (HOLRRCV(ALPHAS, selection="stack").fit(X, Y * s) for s in (1.0, scale))
    for name in ("best_score_", "held_out_mse_", "ridge_mse_"):
        assert_allclose(getattr(scaled, name) / scale / scale, getattr(plain, name), rtol=1e-5)
    for name in ("mean_mse", "std_mse", "fold_mse", "null_mse", "held_out_mse"):
        found, expected = (m.cv_results_[name] for m in (scaled, plain))
        assert_allclose(found / scale / scale, expected, rtol=1e-8)


@pytest.mark.parametrize("way", ["ridge regression", "ranks", "ranks and penalties of outputs"])
def test_files_keep_a_stack(tmp_path, way):
    models = (HOLRRCV(ALPHAS).fit(*noisy(30, 5, (4, 3), seed)) for seed in range(20))
    model = next(model for model in models if model.choice_ == way)
    X = noisy(30, 5, (4, 3))[0]
    model.save(tmp_path / "model.holrr")
    again = holrr.load(tmp_path / "model.holrr")
    assert_allclose(again.predict(X), model.predict(X), rtol=0, atol=0)
    assert again.stack_ranks_ == model.stack_ranks_
    for found, expected in zip(again.stack_alphas_, model.stack_alphas_, strict=True):
        assert_array_equal(found, expected)
    assert again.choice_ == model.choice_
    assert again.cv_results_["ways"] == model.cv_results_["ways"]
    assert again.rank_ == model.rank_


def test_the_stack_is_better_than_the_best_rank_where_there_is_much_noise():
    ratios = []
    for seed in range(6):
        X, Y, coef = make_tensor_regression(
            40, 8, (8, 8), rank=(4, 3, 3), snr=0.5, return_coef=True, random_state=seed
        )
        errors = [
            np.linalg.norm(HOLRRCV(selection=s).fit(X, Y).coef_ - coef) for s in ("stack", "min")
        ]
        ratios.append(errors[0] / errors[1])
    assert np.mean(ratios) < 0.99
    assert max(ratios) < 1.03


def test_the_stack_of_constant_outputs_predicts_the_mean():
    X, Y = toy(n=20)
    model = HOLRRCV(ALPHAS, cv=4, selection="stack").fit(X, np.ones_like(Y))
    assert_allclose(model.predict(X), 1.0)


@pytest.mark.parametrize("make", PLAIN)
def test_a_stack_does_not_depend_on_the_order_of_penalties_or_folds(make):
    X, Y = noisy(30, 5, (4, 3))
    splits = list(KFold(5).split(X))
    plain = make(ALPHAS, cv=splits).fit(X, Y)
    other = make(ALPHAS[::-1], cv=splits[::-1]).fit(X, Y)
    assert_allclose(other.predict(X), plain.predict(X), rtol=1e-9, atol=1e-9)
    assert_allclose(other.held_out_mse_, plain.held_out_mse_, rtol=1e-9)
    assert other.alpha_ == plain.alpha_


@pytest.mark.parametrize("make", PLAIN)
@pytest.mark.parametrize("seed", range(4))
def test_a_stack_does_not_depend_on_permutations(make, seed):
    """Inputs, outputs and modes in another order; rotations of inputs."""
    X, Y = noisy(30, 5, (4, 3), seed)
    rng = np.random.default_rng(0)
    model = make(ALPHAS, cv=KFold(5)).fit(X, Y)
    plain = model.predict(X)
    columns, rows = rng.permutation(5), rng.permutation(4)
    moved = make(ALPHAS, cv=KFold(5)).fit(X[:, columns], Y[:, rows])
    assert_allclose(moved.predict(X[:, columns]), plain[:, rows], rtol=1e-7, atol=1e-8)
    turned = make(ALPHAS, cv=KFold(5)).fit(X, Y.transpose(0, 2, 1))
    assert_allclose(turned.predict(X), plain.transpose(0, 2, 1), rtol=1e-7, atol=1e-8)
    Q = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    rotated = make(ALPHAS, cv=KFold(5)).fit(X @ Q, Y)
    assert_allclose(rotated.predict(X @ Q), plain, rtol=1e-7, atol=1e-8)
    for other in (moved, turned, rotated):
        assert other.choice_ == model.choice_
        for name in ("held_out_mse_", "ridge_mse_"):
            assert_allclose(getattr(other, name), getattr(model, name), rtol=1e-8)


@pytest.mark.parametrize("make", PLAIN)
def test_mixtures_of_ranks_do_not_depend_on_rotations_of_outputs(make):
    """Penalties of single outputs do."""
    n_compared = 0
    for seed in range(8):
        X, Y = noisy(30, 5, (4, 3), seed)
        rng = np.random.default_rng(seed)
        U, V = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (4, 3))
        rotated = np.einsum("nij,ik,jl->nkl", Y, U, V)
        plain, found = (make(ALPHAS, cv=KFold(5)).fit(X, A) for A in (Y, rotated))
        assert plain.best_index_ == found.best_index_
        assert_allclose(found.ridge_mse_, plain.ridge_mse_, rtol=1e-9)
        errors = [model.cv_results_["ways_mse"][:2] for model in (plain, found)]
        assert_allclose(*errors, rtol=1e-8)
        if "ranks and penalties of outputs" not in (plain.choice_, found.choice_):
            assert found.choice_ == plain.choice_
            expected = np.einsum("nij,ik,jl->nkl", plain.predict(X), U, V)
            assert_allclose(found.predict(X), expected, rtol=1e-7, atol=1e-8)
            n_compared += 1
    assert n_compared >= 3


@pytest.mark.parametrize("make", PLAIN)
def test_weights_of_samples_are_repetitions_in_a_stack(make):
    X, Y = noisy(24, 5, (4, 3))
    w = np.tile([1, 2, 0], 8)
    folds = np.arange(24) // 6
    index = np.repeat(np.arange(24), w)
    where = folds[index]
    splits = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(4)]
    repeated = [(np.flatnonzero(where != k), np.flatnonzero(where == k)) for k in range(4)]
    more = {} if make in (HOLRRCV, LRRCV) else {"gammas": [0.1]}
    one = make(ALPHAS, cv=splits, **more).fit(X, Y, sample_weight=w.astype(float))
    other = make(ALPHAS, cv=repeated, **more).fit(X[index], Y[index])
    assert_allclose(one.predict(X), other.predict(X), rtol=1e-7, atol=1e-8)
    assert_allclose(one.held_out_mse_, other.held_out_mse_, rtol=1e-8)


@pytest.mark.parametrize("shape", [(4, 3), (6, 5, 4)], ids=str)
def test_memory_that_caps_the_ranks_leaves_ridge_regression_among_the_parts(shape, small_budget):
    X, Y = noisy(60, 6, shape)
    small_budget(2000)
    with pytest.warns(UserWarning, match="caps the rank of each mode at"):
        model = HOLRRCV(ALPHAS).fit(X, Y)
    assert None in model.stack_ranks_
    assert_allclose(model.predict(X), mixture(model, X, Y), rtol=1e-8, atol=1e-8)


def test_the_repr_of_a_search_says_what_was_chosen():
    models = [HOLRRCV(ALPHAS).fit(*noisy(30, 5, (4, 3), seed)) for seed in range(20)]
    for model in models:
        line = repr(model).splitlines()[-1]
        if model.choice_ == "ridge regression":
            end = f"at alpha={model.alpha_:.3g}; no mixture has a lower error"
            assert line == f"# ridge regression {end}"
        else:
            n, alpha = len(model.stack_weights_), f"{model.alpha_:.3g}"
            assert line.startswith(f"# mixture of {n} models at alpha={alpha}: ")
    model = next(model for model in models if model.choice_ == "ranks")
    assert "# " not in repr(HOLRRCV(ALPHAS))
    assert "# " not in repr(HOLRRCV(ALPHAS, selection="min").fit(*noisy(30, 5, (4, 3))))
    assert eval(repr(model), {"HOLRRCV": HOLRRCV, "array": np.array}).get_params()["cv"] == 5
    assert "mixture of" in model._repr_mimebundle_()["text/html"]
    model.alpha_ = 1.0
    model.stack_weights_ = np.array([0.996, 0.0035, 0.0005])  # the latter are 0 %
    model.stack_ranks_, model.stack_alphas_ = [(2, 2, 2), None, None], [1.0, 1.0, np.ones((4, 3))]
    assert repr(model).endswith("# mixture of 3 models at alpha=1: 100% rank (2, 2, 2)")
    model.stack_weights_ = np.array([0.991, 0.0045, 0.0045])
    assert repr(model).endswith(
        "# mixture of 3 models at alpha=1: 99% rank (2, 2, 2), 1% in 2 more"
    )
    model.stack_weights_ = np.array([0.5, 0.25, 0.125])
    shown = "50% rank (2, 2, 2), 25% ridge, 12% ridge with averaged penalties, 12% the mean"
    assert repr(model).endswith(f"# mixture of 3 models at alpha=1: {shown}")


@pytest.mark.parametrize("make", PLAIN)
def test_pure_noise_is_predicted_as_well_as_by_the_mean(make):
    """Over six seeds the errors of new samples exceed those of the mean by less than a percent."""
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(150, 6)), rng.normal(size=(150, 4, 5))
        model = make(cv=5).fit(X[:50], Y[:50])
        errors = [np.mean((Y[50:] - P) ** 2) for P in (model.predict(X[50:]), Y[:50].mean(axis=0))]
        ratios.append(errors[0] / errors[1])
    assert np.mean(ratios) < 1.01
    assert max(ratios) < 1.03
