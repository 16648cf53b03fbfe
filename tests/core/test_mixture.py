"""Mixtures against weighted sums of separate fits, and sums of Tucker tensors."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference
from holrr.core.approximate import FullRank, MatrixRank, MultilinearRank, hosvd
from holrr.core.mixture import Component, Mixture, add_tuckers, mask_of, mix
from holrr.core.spectral import spectral_from_samples
from holrr.core.tensor import Tucker
from holrr.data.validation import Samples
from holrr.kernel.fit import KernelOptions, fit_landmarks, fit_samples
from holrr.kernel.gram import KernelFunction
from holrr.kernel.landmarks import Landmarks
from holrr.linear.fit import LinearOptions, fit_data, fit_moments
from holrr.streaming.moments import Moments
from problems import low_rank_tensor, toy

BASES = [MatrixRank(), MultilinearRank(), MultilinearRank(subspaces="response")]
MATRIX, TENSOR, RESPONSE = BASES
ONE_PENALTY = [(1.0, 1, 0.2), (1.0, 2, 0.45), (1.0, 3, 0.3)]
PENALTIES = [(1.0, 2, 0.3), (0.03, 1, 0.2), (20.0, 3, 0.15), (20.0, 1, 0.05)]
RIDGE = [(1.0, None, 0.25), (5.0, None, 0.1)]
MIXTURES = {
    "one penalty": ONE_PENALTY,
    "one penalty and ridge": [*ONE_PENALTY, (1.0, None, 0.05)],
    "penalties": PENALTIES,
    "penalties and ridge": [(a, R, 0.5 * w) for a, R, w in PENALTIES] + RIDGE,
    "other penalties": [(0.03, 2, 0.6), (20.0, 1, 0.4)],
    "ridge": RIDGE,
    "no penalty": [(0.0, 2, 0.3), (1.0, 2, 0.5), (0.0, None, 0.2)],
}


def full(rank, base, shape):
    """One entry for each mode that `base` reduces, none above the size of its mode."""
    if rank is None:
        return None
    sizes = shape[:1] if isinstance(base, MatrixRank) else shape
    return tuple(min(rank + (rank > 1) * (mode % 2), d) for mode, d in enumerate(sizes))


def ranked(base, rank):
    """The structure of one rank of a mixture."""
    if rank is None:
        return FullRank()
    return replace(base, rank=rank[0] if isinstance(base, MatrixRank) else rank)


def n_modes(base, shape):
    return 1 if isinstance(base, MatrixRank) else len(shape)


def parts_of(base, shape, parts):
    return [(alpha, full(rank, base, shape), weight) for alpha, rank, weight in parts]


def mixture_of(base, shape, parts, alpha=1.0):
    return mix(base, alpha, parts_of(base, shape, parts), n_modes(base, shape))


def linear(X, Y, structure, alpha=1.0, w=None, **options):
    return fit_data(Samples(X, Y, w), LinearOptions(structure, alpha, **options))[0]


def freedom(fit):
    """Degrees of freedom of a fit, without those of the intercept."""
    return fit.hat["share"] * fit.hat["trace"]


def coefficients(fit):
    return np.asarray(fit.tucker.to_dense())


def sum_of(fits, weights, mean):
    """Coefficients and intercept of the weighted sum of fits; the rest of the weight is the mean's.

    Without an intercept the mean is zero.
    """
    W = sum(w * coefficients(fit) for w, fit in zip(weights, fits, strict=True))
    b = sum(w * fit.intercept for w, fit in zip(weights, fits, strict=True))
    return W, b + (1 - math.fsum(weights)) * mean


def assert_is_sum(fit, fits, weights, mean, tol=1e-12):
    W, b = sum_of(fits, weights, mean)
    assert_allclose(coefficients(fit), W, rtol=0, atol=tol * np.abs(W).max())
    assert_allclose(fit.intercept, b, rtol=0, atol=tol * (np.abs(b).max() + np.abs(W).max()))


# ---------------------------------------------------------------- linear fits


@pytest.mark.parametrize("shape", [(5,), (5, 6), (5, 3, 4), (4, 2, 3, 2)], ids=str)
@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("base", BASES, ids=["matrix", "tensor", "response"])
def test_a_mixture_is_the_weighted_sum_of_separate_fits(base, name, shape):
    X, Y = toy(d0=shape[0], shape=shape[1:])
    parts = parts_of(base, shape, MIXTURES[name])
    fit = linear(X, Y, mix(base, 1.0, parts, n_modes(base, shape)))
    fits = [linear(X, Y, ranked(base, rank), alpha) for alpha, rank, _ in parts]
    assert_is_sum(fit, fits, [w for _, _, w in parts], Y.mean(axis=0))


@pytest.mark.parametrize("base", BASES, ids=["matrix", "tensor", "response"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "d0"), [(9, 30), (7, 7), (80, 6)])
@pytest.mark.parametrize("weighted", [False, True])
def test_mixtures_of_few_and_of_weighted_samples(base, fit_intercept, n, d0, weighted):
    X, Y = toy(n, d0, (3, 4))
    w = np.random.default_rng(1).uniform(0.1, 2.0, n) if weighted else None
    parts = parts_of(base, (d0, 3, 4), MIXTURES["penalties and ridge"])
    options = {"w": w, "fit_intercept": fit_intercept}
    fit = linear(X, Y, mix(base, 1.0, parts, n_modes(base, (d0, 3, 4))), **options)
    fits = [linear(X, Y, ranked(base, rank), alpha, **options) for alpha, rank, _ in parts]
    mean = np.average(Y, axis=0, weights=w) if fit_intercept else np.zeros((3, 4))
    assert_is_sum(fit, fits, [w for _, _, w in parts], mean)


@pytest.mark.parametrize("base", [MATRIX, TENSOR], ids=["matrix", "tensor"])
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_mixtures_of_data_of_extreme_scale(base, scale):
    """The effect of a penalty stays the same where it is multiplied by the square of the scale."""
    X, Y = toy()
    parts = parts_of(base, (5, 3, 4), MIXTURES["penalties and ridge"])
    here = linear(X, Y, mix(base, 1.0, parts, n_modes(base, (5, 3, 4))))
    large = [(alpha * scale * scale, rank, weight) for alpha, rank, weight in parts]
    alpha = scale * scale
    there = linear(
        X * scale, Y * scale, mix(base, alpha, large, n_modes(base, (5, 3, 4))), alpha=alpha
    )
    assert_allclose(coefficients(there), coefficients(here), rtol=0, atol=1e-12)
    assert_allclose(there.intercept / scale, here.intercept, rtol=1e-12)
    assert freedom(there) == pytest.approx(freedom(here), rel=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.03, 1.0, 700.0])
def test_the_sum_does_not_depend_on_the_penalty_in_whose_coordinates_it_is_formed(alpha):
    X, Y = toy()
    parts = parts_of(TENSOR, (5, 3, 4), MIXTURES["penalties and ridge"])
    found = linear(X, Y, mix(TENSOR, alpha, parts, 3), alpha)
    expected = linear(X, Y, mix(TENSOR, 1.0, parts, 3))
    assert_allclose(coefficients(found), coefficients(expected), rtol=0, atol=1e-12)
    assert freedom(found) == pytest.approx(freedom(expected), rel=1e-12)


@pytest.mark.parametrize("base", [MATRIX, TENSOR], ids=["matrix", "tensor"])
@pytest.mark.parametrize("name", MIXTURES)
def test_the_objective_of_a_mixture_is_that_of_its_coefficients(base, name):
    """At the penalty of the mixture; no coefficients have one below the bound."""
    X, Y = toy()
    fit = linear(X, Y, mixture_of(base, (5, 3, 4), MIXTURES[name]))
    W, b = coefficients(fit), fit.intercept
    assert fit.objective == pytest.approx(reference.objective(X, Y, W, 1.0, b), rel=1e-12)
    ridge = linear(X, Y, FullRank())
    assert fit.lower_bound == pytest.approx(ridge.objective, rel=1e-12)
    assert fit.energy == pytest.approx(ridge.energy, rel=1e-12)
    rss = np.sum((Y - np.tensordot(X, W, 1) - b) ** 2, axis=0)
    assert_allclose(fit.rss_root, np.sqrt(rss), rtol=1e-10)


@pytest.mark.parametrize("base", [MATRIX, TENSOR], ids=["matrix", "tensor"])
@pytest.mark.parametrize("rank", [1, 2, None])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 40.0])
def test_a_mixture_of_one_fit_is_that_fit(base, rank, alpha):
    X, Y = toy()
    rank = full(rank, base, (5, 3, 4))
    fit = linear(X, Y, mix(base, alpha, [(alpha, rank, 1.0)], n_modes(base, (5, 3, 4))), alpha)
    one = linear(X, Y, ranked(base, rank), alpha)
    assert_is_sum(fit, [one], [1.0], 0.0)
    assert fit.objective == pytest.approx(one.objective, rel=1e-12)
    assert fit.energy == pytest.approx(one.energy, rel=1e-12)
    assert freedom(fit) == pytest.approx(freedom(one), rel=1e-12)
    assert_allclose(fit.rss_root, one.rss_root, rtol=1e-10)
    if rank is not None:
        assert fit.tucker.rank == one.tucker.rank
        for found, expected in zip(fit.spectra, one.spectra, strict=True):
            assert_allclose(found, expected, rtol=1e-10, atol=1e-12 * one.energy)


@pytest.mark.parametrize("base", BASES, ids=["matrix", "tensor", "response"])
@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize(("n", "d0"), [(40, 5), (9, 30)])
def test_degrees_of_freedom_are_the_weighted_mean_of_those_of_the_parts(base, name, n, d0):
    """What the weights lack of one is that of the mean, which has none."""
    X, Y = toy(n, d0)
    parts = parts_of(base, (d0, 3, 4), MIXTURES[name])
    fit = linear(X, Y, mix(base, 1.0, parts, n_modes(base, (d0, 3, 4))))
    each = [w * freedom(linear(X, Y, ranked(base, rank), alpha)) for alpha, rank, w in parts]
    assert freedom(fit) == pytest.approx(sum(each), rel=1e-10)


@pytest.mark.parametrize("base", [MATRIX, TENSOR], ids=["matrix", "tensor"])
def test_the_empty_mixture_predicts_the_mean(base):
    X, Y = toy()
    fit = linear(X, Y, mix(base, 1.0, [], n_modes(base, (5, 3, 4))))
    assert not coefficients(fit).any()
    assert fit.tucker.rank == ((1, 3, 4) if isinstance(base, MatrixRank) else (1, 1, 1))
    assert_allclose(fit.predict(X), np.broadcast_to(Y.mean(axis=0), Y.shape), rtol=1e-12)
    assert fit.objective == pytest.approx(np.sum((Y - Y.mean(axis=0)) ** 2), rel=1e-12)
    assert freedom(fit) == 0.0


def test_ranks_above_the_sizes_of_their_modes_are_those_sizes():
    X, Y = toy()
    large = linear(X, Y, mix(TENSOR, 1.0, [(1.0, (9, 2, 9), 0.5), (3.0, (1, 9, 1), 0.5)], 3))
    fits = [linear(X, Y, MultilinearRank((5, 2, 4))), linear(X, Y, MultilinearRank((1, 3, 1)), 3.0)]
    assert_is_sum(large, fits, [0.5, 0.5], 0.0)


def test_constant_inputs_leave_the_mean():
    _, Y = toy()
    fit = linear(np.ones((40, 5)), Y, mixture_of(TENSOR, (5, 3, 4), PENALTIES))
    assert not coefficients(fit).any()
    assert freedom(fit) == 0.0
    assert_allclose(fit.intercept, Y.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("base", [MATRIX, TENSOR], ids=["matrix", "tensor"])
def test_mixtures_are_fitted_to_moments(base):
    X, Y = toy()
    mixture = mixture_of(base, (5, 3, 4), MIXTURES["penalties and ridge"])
    found = fit_moments(Moments.from_arrays(X, Y), LinearOptions(mixture, 1.0))
    expected = linear(X, Y, mixture)
    assert_allclose(coefficients(found), coefficients(expected), rtol=0, atol=1e-12)
    assert freedom(found) == pytest.approx(freedom(expected), rel=1e-10)


def test_a_mixture_of_many_features_is_fitted_by_an_eigendecomposition():
    """One factorisation for all penalties, also where a single fit takes that of Cholesky."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(400, 260)), rng.normal(size=(400, 4))
    fits = [linear(X, Y, structure, 2.0) for structure in (MultilinearRank((2, 3)), FullRank())]
    assert [fit.solver for fit in fits] == ["cholesky"] * 2
    for solver in ("auto", "cholesky", "eigh"):
        mixture = mix(TENSOR, 2.0, [(2.0, (2, 3), 0.6), (2.0, None, 0.4)], 2)
        fit = linear(X, Y, mixture, 2.0, solver=solver)
        assert fit.solver == "eigh"
        assert_is_sum(fit, fits, [0.6, 0.4], 0.0, tol=1e-10)


# ---------------------------------------------------------------- kernels


@pytest.mark.parametrize("base", BASES, ids=["matrix", "tensor", "response"])
@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_mixture_of_kernel_fits_is_their_weighted_sum(base, name, fit_intercept):
    X, Y = toy(20)
    data, kernel = Samples(X, Y), KernelFunction("rbf", {"gamma": 0.1})
    shape = (20, 3, 4)
    parts = [(a or 1e-3, full(rank, base, shape), w) for a, rank, w in MIXTURES[name]]
    how = {"fit_intercept": fit_intercept}
    mixture = mix(base, 1.0, parts, n_modes(base, shape))
    fit = fit_samples(data, kernel, KernelOptions(mixture, 1.0, **how))
    fits = [
        fit_samples(data, kernel, KernelOptions(ranked(base, R), a, solver="eigh", **how))
        for a, R, _ in parts
    ]
    weights = [w for _, _, w in parts]
    assert_is_sum(fit, fits, weights, Y.mean(axis=0) * fit_intercept, tol=1e-10)


@pytest.mark.parametrize("base", [MATRIX, TENSOR], ids=["matrix", "tensor"])
def test_a_mixture_of_fits_with_landmarks_is_their_weighted_sum(base):
    X, Y = toy()
    features = Landmarks.of(KernelFunction("rbf", {"gamma": 0.1}), X[:10])
    moments = Moments.from_arrays(features.features(X), Y)
    parts = parts_of(base, (10, 3, 4), MIXTURES["penalties and ridge"])
    mixture = mix(base, 1.0, parts, n_modes(base, (10, 3, 4)))
    fit = fit_landmarks(features, moments, KernelOptions(mixture, 1.0))
    fits = [
        fit_landmarks(features, moments, KernelOptions(ranked(base, R), a)) for a, R, _ in parts
    ]
    assert_is_sum(fit, fits, [w for _, _, w in parts], Y.mean(axis=0), tol=1e-10)


@pytest.mark.parametrize("base", BASES, ids=["matrix", "tensor", "response"])
@pytest.mark.parametrize("name", MIXTURES)
def test_degrees_of_freedom_of_kernel_fits_are_the_weighted_mean_of_those_of_the_parts(base, name):
    X, Y = toy(20)
    data, kernel, shape = Samples(X, Y), KernelFunction("rbf", {"gamma": 0.1}), (20, 3, 4)
    parts = [(a or 1e-3, full(rank, base, shape), w) for a, rank, w in MIXTURES[name]]
    mixture = mix(base, 1.0, parts, n_modes(base, shape))
    fit = fit_samples(data, kernel, KernelOptions(mixture, 1.0))
    each = [
        w * freedom(fit_samples(data, kernel, KernelOptions(ranked(base, R), a, solver="eigh")))
        for a, R, w in parts
    ]
    assert freedom(fit) == pytest.approx(sum(each), rel=1e-8)


# ---------------------------------------------------------------- structure


def test_fits_of_one_penalty_are_one_component():
    parts = [(1.0, (1, 2), 0.5), (2.0, None, 0.125), (1.0, (2, 1), 0.25), (1.0, None, 0.125)]
    mixture = mix(TENSOR, 1.0, parts, 2)
    one, two = mixture.components
    assert (one.alpha, one.ridge, two.alpha, two.ridge) == (1.0, 0.125, 2.0, 0.125)
    assert one.ranks == (((1, 2), 0.5), ((2, 1), 0.25))
    assert two.ranks == ()
    mask = mask_of(*zip(*one.ranks, strict=True))
    assert_array_equal(mask, [[0.75, 0.5], [0.25, 0.0]])
    assert_array_equal(mask_of([(2, 1), (1, 3)], [0.5, 0.25]), [[0.75, 0.25, 0.25], [0.5, 0, 0]])


def test_a_mixture_is_a_structure():
    mixture = mixture_of(TENSOR, (5, 3, 4), PENALTIES)
    assert mixture.check(5, (3, 4)) == (5, 3, 4)
    assert mixture.n_leading(5, (3, 4)) is None
    assert mixture.min_alpha == 0.03
    assert not mixture.needs_response_grams
    assert mixture_of(RESPONSE, (5, 3, 4), PENALTIES).needs_response_grams
    assert mixture_of(MATRIX, (5, 3, 4), PENALTIES).check(5, (3, 4)) == (5,)


def test_penalties_change_together():
    mixture = Mixture(TENSOR, 1.0, (Component(0.5, ridge=1.0), Component(4.0, ridge=1.0)))
    assert mixture.about(1.0) is mixture
    for found in (mixture.about(3.0), mixture.in_units(math.sqrt(1 / 3))):
        penalties = [found.alpha, *(part.alpha for part in found.components)]
        assert_allclose(penalties, [3.0, 1.5, 12.0], rtol=1e-15)
    large = mixture.in_units(1e-160)
    assert large.alpha == large.components[1].alpha == np.finfo(float).max


@pytest.mark.parametrize("name", MIXTURES)
def test_a_sum_that_is_written_out_is_the_same(name):
    X, Y = toy()
    mixture = mixture_of(TENSOR, (5, 3, 4), MIXTURES[name])
    problem = spectral_from_samples(X, Y).at(1.0)
    found = replace(mixture, compact=False).approximate(problem, 5)
    compact = mixture.approximate(problem, 5)
    assert found.tucker.factors == (None, None, None)
    assert_allclose(found.tucker.core, compact.tucker.to_dense(), rtol=0, atol=1e-12)
    assert found.error == pytest.approx(compact.error, rel=1e-10)


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("name", MIXTURES)
def test_outputs_that_are_never_observed_do_not_count_in_the_error(name, compact):
    """What stands in their columns is mixed as it is."""
    X, Y = toy()
    never = np.zeros((3, 4), dtype=bool)
    never[1, 2] = never[0, 0] = True
    spectral = spectral_from_samples(X, Y)
    mixture = replace(mixture_of(TENSOR, (5, 3, 4), MIXTURES[name]), compact=compact)
    whole = mixture.approximate(spectral.at(1.0), 5)
    problem = replace(spectral, never=never).at(1.0)
    found = mixture.approximate(problem, 5)
    V = found.tucker.to_dense()
    assert_allclose(V, whole.tucker.to_dense(), rtol=0, atol=1e-12)
    assert found.error == pytest.approx(np.sum((problem.Z - V)[:, ~never] ** 2), rel=1e-10)
    assert whole.error == pytest.approx(np.sum((problem.Z - V) ** 2), rel=1e-10)


def test_the_rank_of_a_mixture_at_one_penalty_is_the_largest_of_its_ranks():
    X, Y = toy()
    fit = linear(X, Y, mix(TENSOR, 1.0, [(1.0, (1, 2, 1), 0.5), (1.0, (2, 1, 3), 0.5)], 3))
    assert fit.tucker.rank == (2, 2, 3)
    assert fit.tucker.leading == (0, 1, 2)
    several = linear(X, Y, mix(TENSOR, 1.0, [(1.0, (1, 1, 1), 0.5), (9.0, (1, 1, 1), 0.5)], 3))
    assert several.tucker.rank == (2, 2, 2)


@pytest.mark.parametrize("base", [MATRIX, TENSOR], ids=["matrix", "tensor"])
@pytest.mark.parametrize("name", MIXTURES)
def test_mixtures_in_every_library(base, name, xp):
    X, Y = toy()
    mixture = mixture_of(base, (5, 3, 4), MIXTURES[name])
    here, there = linear(X, Y, mixture), linear(xp.asarray(X), xp.asarray(Y), mixture)
    W = there.tucker
    assert all(xp.owns(A) for A in (W.core, *W.factors, there.intercept) if A is not None)
    assert W.rank == here.tucker.rank
    assert_allclose(xp.to_numpy(W.to_dense()), coefficients(here), rtol=0, atol=1e-12)
    assert_allclose(xp.to_numpy(W.core), here.tucker.core, rtol=0, atol=1e-8)  # the signs, too
    assert there.objective == pytest.approx(here.objective, rel=1e-10)
    assert freedom(there) == pytest.approx(freedom(here), rel=1e-10)


# ---------------------------------------------------------------- sums of Tucker tensors


def random_tucker(rng, shape, rank, *, identities=()):
    """A tensor in Tucker form; the modes in `identities` have no factor."""
    rank = tuple(
        d if mode in identities else R for mode, (d, R) in enumerate(zip(shape, rank, strict=True))
    )
    factors = [rng.normal(size=(d, R)) for d, R in zip(shape, rank, strict=True)]
    return Tucker(
        rng.normal(size=rank),
        tuple(None if mode in identities else U for mode, U in enumerate(factors)),
    )


def assert_leading(total):
    """The reduced modes have orthonormal factors, and slices of the core in order of energy."""
    for mode, U in enumerate(total.factors):
        if mode in total.leading:
            assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-12)
            core = reference.unfold(total.core, mode)
            core = core / np.abs(core).max()
            G = core @ core.T
            assert_allclose(G, np.diag(np.diagonal(G)), atol=1e-12 * np.trace(G))
            assert (np.diff(np.diagonal(G)) <= 1e-12 * np.trace(G)).all()
        else:
            assert U is None


@st.composite
def sums(draw):
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        rank = [draw(st.integers(1, d)) for d in shape]
        identities = draw(st.sets(st.integers(0, len(shape) - 1), max_size=1))
        parts.append(random_tucker(rng, shape, rank, identities=identities))
    modes = draw(st.sampled_from([tuple(range(len(shape))), (0,)]))
    return parts, modes


@given(sums())
def test_sums_are_exact_and_in_leading_directions(case):
    parts, modes = case
    total, expected = add_tuckers(parts, modes), sum(part.to_dense() for part in parts)
    assert_allclose(total.to_dense(), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert total.leading == modes
    assert_leading(total)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_sums_of_extreme_scale(scale, order):
    rng = np.random.default_rng(0)
    shape = (6, 5, 4, 3)[:order]
    parts = [random_tucker(rng, shape, (2,) * order) for _ in range(2)]
    here = add_tuckers(parts, range(order))
    there = add_tuckers([Tucker(part.core * scale, part.factors) for part in parts], range(order))
    expected = here.to_dense()
    assert there.rank == here.rank
    assert_allclose(there.to_dense() / scale, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert_leading(there)


def test_a_sum_of_tensors_of_different_scales_keeps_both():
    """Directions of the smaller one are below the precision of squares."""
    rng = np.random.default_rng(0)
    A = low_rank_tensor(rng, (6, 5, 4), (2, 2, 2))
    B = low_rank_tensor(rng, (6, 5, 4), (1, 1, 1))
    for small in (1e-6, 1e-9, 1e-12):
        parts = [Tucker(A, (None,) * 3), Tucker(small * B, (None,) * 3)]
        total = add_tuckers(parts, range(3))
        away = np.abs(total.to_dense() - (A + small * B)).max()
        assert away <= 1e-14 * np.abs(A).max()


@pytest.mark.parametrize("small", [1e-7, 1e-9, 1e-11, 1e-13])
def test_no_direction_with_energy_is_dropped(small):
    """Even where directions without any come before it, since squares do not tell them apart."""
    A = np.zeros((4, 4))
    A[:3, :3], A[3, 3] = 1.0, small
    total = add_tuckers([Tucker(A, (None, None))], (0, 1))
    assert_allclose(total.to_dense(), A, rtol=0, atol=1e-14)


def test_directions_without_energy_are_dropped():
    rng = np.random.default_rng(0)
    one, two = (random_tucker(rng, (6, 5, 4), (2, 2, 2)) for _ in range(2))
    same = Tucker(rng.normal(size=(2, 2, 2)), one.factors)
    cancels = Tucker(-two.core, two.factors)
    assert add_tuckers([one, two], range(3)).rank == (4, 4, 4)
    assert add_tuckers([one, same], range(3)).rank == (2, 2, 2)
    assert add_tuckers([one, two, cancels], range(3)).rank == (2, 2, 2)
    assert add_tuckers([one, Tucker(0 * two.core, two.factors)], range(3)).rank == (2, 2, 2)
    assert add_tuckers([one, two], (0,)).rank == (4, 5, 4)
    dense = Tucker(low_rank_tensor(rng, (6, 5, 4), (2, 3, 2)), (None,) * 3)
    assert add_tuckers([dense], range(3)).rank == (2, 3, 2)
    # A mode has no more directions than all others together.
    assert add_tuckers([random_tucker(rng, (9, 2, 2), (9, 2, 2))], range(3)).rank == (4, 2, 2)


def test_the_sum_of_nothing_is_zero_of_rank_one():
    zero = Tucker(np.zeros((1, 1)), (np.ones((3, 1)), np.ones((4, 1))))
    total = add_tuckers([zero], (0, 1))
    assert total.rank == (1, 1)
    assert not total.to_dense().any()


def test_signs_do_not_depend_on_rounding_nor_on_the_form_of_the_parts():
    rng = np.random.default_rng(0)
    parts = [random_tucker(rng, (6, 5, 4), (2, 2, 2)) for _ in range(2)]
    total = add_tuckers(parts, range(3))
    moved = [
        Tucker(part.core * (1 + 1e-13 * rng.normal(size=part.core.shape)), part.factors)
        for part in parts
    ]
    turned = [Tucker(-part.core, (-part.factors[0][:, ::-1], *part.factors[1:])) for part in parts]
    turned = [Tucker(part.core[::-1], part.factors) for part in turned]
    dense = [Tucker(part.to_dense(), (None,) * 3) for part in parts]
    for others in (moved, turned, parts[::-1], dense):
        found = add_tuckers(others, range(3))
        assert_allclose(found.core, total.core, atol=1e-9 * np.abs(total.core).max())
        for U, V in zip(found.factors, total.factors, strict=True):
            assert_allclose(U, V, atol=1e-9)
    for U in total.factors[1:]:
        assert (U[np.abs(U).argmax(0), range(U.shape[1])] > 0).all()
    slices = reference.unfold(total.core, 0)
    assert (slices[range(len(slices)), np.abs(slices).argmax(1)] > 0).all()


def test_a_sum_of_one_hosvd_has_its_core_up_to_signs():
    Z = np.random.default_rng(0).normal(size=(6, 5, 4))
    one = hosvd(Z, (3, 2, 2)).tucker
    total = add_tuckers([one], range(3))
    # The core of a truncated HOSVD is not in its own leading directions; the tensor is the same.
    assert total.rank == one.rank
    assert_allclose(total.to_dense(), one.to_dense(), rtol=0, atol=1e-12)
    for U, V in zip(total.factors, one.factors, strict=True):
        assert_allclose(U @ U.T, V @ V.T, atol=1e-10)  # the same subspaces


def test_sums_in_every_library(xp):
    rng = np.random.default_rng(0)
    parts = [random_tucker(rng, (6, 5, 4), (2, 2, 2)) for _ in range(2)]
    parts.append(random_tucker(rng, (6, 5, 4), (2, 2, 2), identities=(0, 1, 2)))
    there = [
        Tucker(
            xp.asarray(part.core),
            tuple(None if U is None else xp.asarray(U) for U in part.factors),
        )
        for part in parts
    ]
    for some in (slice(2), slice(3)):
        for modes in (range(3), (0,)):
            here, found = add_tuckers(parts[some], modes), add_tuckers(there[some], modes)
            assert found.rank == here.rank
            assert all(xp.owns(A) for A in (found.core, *found.factors) if A is not None)
            assert_allclose(xp.to_numpy(found.core), here.core, rtol=0, atol=1e-9)
