import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from holrr.datasets import make_tensor_regression

LINEAR = {"n_features": 10, "output_shape": (10, 10, 10), "rank": (6, 4, 4, 8)}
QUADRATIC = {
    "kind": "quadratic",
    "n_features": 5,
    "output_shape": (10, 10, 10),
    "rank": (5, 6, 4, 2),
}


def multilinear_rank(W):
    return tuple(
        int(np.linalg.matrix_rank(np.moveaxis(W, mode, 0).reshape(d, -1)))
        for mode, d in enumerate(W.shape)
    )


def draw(seed=0, **kwargs):
    return make_tensor_regression(return_coef=True, random_state=seed, **kwargs)


def test_linear_responses_are_the_contraction_with_the_inputs():
    X, Y, W = draw(n_samples=7, noise=0, **LINEAR)
    assert X.shape == (7, 10)
    assert W.shape == (10, 10, 10, 10)
    assert_allclose(Y, np.einsum("ni,iabc->nabc", X, W))


def test_quadratic_responses_are_the_contraction_with_x_kron_x():
    X, Y, W = draw(n_samples=7, noise=0, **QUADRATIC)
    assert W.shape == (25, 10, 10, 10)
    kron = np.array([np.kron(x, x) for x in X])
    assert_allclose(Y, np.tensordot(kron, W, axes=1))


@pytest.mark.parametrize("config", [LINEAR, QUADRATIC])
def test_coefficients_have_the_multilinear_rank_asked_for(config):
    assert multilinear_rank(draw(**config)[2]) == config["rank"]


@pytest.mark.parametrize(
    ("rank", "expected"),
    [(None, (6, 4, 5)), (2, (2, 2, 2)), (5, (5, 4, 5)), ((3, 1, 3), (3, 1, 3))],
)
def test_rank_of_every_form(rank, expected):
    W = draw(n_features=6, output_shape=(4, 5), rank=rank)[2]
    assert multilinear_rank(W) == expected


def test_no_constraint_with_more_inputs_than_outputs():
    assert multilinear_rank(draw(n_features=9, output_shape=(2, 3))[2]) == (6, 2, 3)


def test_integer_output_shape_is_one_mode():
    _, Y, W = draw(n_features=3, output_shape=4)
    assert Y.shape == (100, 4)
    assert W.shape == (3, 4)


def test_core_and_factors_are_not_normalised():
    # Each response sums prod(rank) terms, each a product of p + 3 standard normal variables.
    signals = [draw(seed, n_samples=200, noise=0, **LINEAR)[1] for seed in range(20)]
    assert_allclose(np.sqrt(np.mean(np.square(signals))), np.sqrt(6 * 4 * 4 * 8 * 10), rtol=0.2)


def test_quadratic_signal_has_unit_standard_deviation():
    assert_allclose(draw(noise=0, **QUADRATIC)[1].std(), 1.0)


@pytest.mark.parametrize("config", [LINEAR, QUADRATIC])
def test_normalize_overrides_the_default(config):
    on = draw(noise=0, normalize=True, **config)[1].std()
    off = draw(noise=0, normalize=False, **config)[1].std()
    assert_allclose(on, 1.0)
    assert not np.isclose(off, 1.0, rtol=0.1)


def residual(n_samples=400, **kwargs):
    X, Y, W = draw(n_samples=n_samples, **LINEAR, **kwargs)
    signal = np.tensordot(X, W, axes=1)
    return signal, Y - signal


def test_noise_is_a_standard_deviation_unless_told_otherwise():
    assert_allclose(residual(noise=0.1)[1].std(), 0.1, rtol=0.01)
    variance = residual(noise=0.1, noise_unit="variance")[1].var()
    assert_allclose(variance, 0.1, rtol=0.01)


def test_snr_is_the_ratio_of_standard_deviations():
    signal, noise = residual(snr=2.0)
    assert_allclose(signal.std() / noise.std(), 2.0, rtol=0.01)
    assert_allclose(residual(snr=np.inf)[1], 0.0, atol=1e-10)


@pytest.mark.parametrize("mode", [1, 2, 3])
def test_anisotropic_noise_is_strong_in_few_directions_of_its_mode_only(mode):
    _, noise = residual(
        noise=2.0,
        noise_kind="anisotropic",
        noise_mode=mode,
        n_noise_directions=3,
        noise_ratio=10.0,
    )
    assert_allclose(noise.std(), 2.0, rtol=0.02)
    for other in (1, 2, 3):
        unfolded = np.moveaxis(noise, other, 0).reshape(10, -1)
        std = np.linalg.svd(unfolded, compute_uv=False) / np.sqrt(unfolded.shape[1])
        if other == mode:
            assert_allclose(std[:3] / std[3:].mean(), 10.0, rtol=0.1)
        else:
            assert_allclose(std, 2.0, rtol=0.2)


def test_anisotropic_noise_misleads_the_raw_responses_but_not_the_fitted_ones():
    X, Y, W = draw(
        n_samples=200,
        n_features=5,
        output_shape=(20, 20),
        rank=(2, 2, 2),
        snr=0.5,
        noise_kind="anisotropic",
        noise_ratio=20.0,
    )

    def captured(T):
        """Share of W inside the two leading directions of mode 1 of T."""
        U = np.linalg.svd(np.moveaxis(T, 1, 0).reshape(20, -1), full_matrices=False)[0][:, :2]
        return np.linalg.norm(np.tensordot(W, U, axes=(1, 0))) ** 2 / np.linalg.norm(W) ** 2

    assert captured(W) > 1 - 1e-12
    assert captured(Y) < 0.5
    fitted = np.linalg.lstsq(X, Y.reshape(200, -1), rcond=None)[0].reshape(W.shape)
    assert captured(fitted) > 0.9


def test_same_seed_same_data_and_other_seed_other_coefficients():
    first, again, other = draw(3), draw(3), draw(4)
    for a, b in zip(first, again, strict=True):
        assert_array_equal(a, b)
    assert not np.allclose(first[2], other[2])


def test_coefficients_do_not_depend_on_the_number_of_samples():
    assert_array_equal(draw(n_samples=5)[2], draw(n_samples=50)[2])


def test_one_call_split_in_two_shares_the_coefficients():
    X, Y, W = draw(n_samples=60, noise=0, n_features=4)
    fitted = np.linalg.lstsq(X[:30], Y[:30].reshape(30, -1), rcond=None)[0].reshape(W.shape)
    assert_allclose(np.tensordot(X[30:], fitted, axes=1), Y[30:])


def test_coefficients_are_returned_on_request_only():
    assert len(make_tensor_regression(random_state=0)) == 2


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"n_samples": 0}, r"n_samples must be .* n_samples=0"),
        ({"n_features": 2.5}, r"n_features must be .* n_features=2.5"),
        ({"output_shape": ()}, r"output_shape must be .* output_shape=\(\)"),
        ({"output_shape": (3, 0)}, r"output_shape must be .*\(3, 0\)"),
        ({"kind": "cubic"}, r"kind must be 'linear' or 'quadratic'.*'cubic'"),
        ({"rank": 0}, r"rank must be .* rank=0"),
        ({"rank": (2, 2)}, r"rank must have 3 entries.*\(10, 10, 10\).*rank=\(2, 2\)"),
        ({"rank": (11, 2, 2)}, r"rank must have 3 entries.*rank=\(11, 2, 2\)"),
        ({"rank": (5, 2, 2)}, r"product of the others.*\(5, 2, 2\).*\(4, 2, 2\)"),
        ({"noise": -1}, r"noise must be .* noise=-1"),
        ({"noise": float("nan")}, r"noise must be .* noise=nan"),
        ({"noise_unit": "db"}, r"noise_unit must be 'std' or 'variance'.*'db'"),
        ({"snr": 0}, r"snr must be .* snr=0"),
        ({"noise_kind": "pink"}, r"noise_kind must be .*'pink'"),
        ({"noise_kind": "anisotropic", "noise_mode": 0}, r"noise_mode .* from 1 to 2.*=0"),
        ({"noise_kind": "anisotropic", "noise_mode": 3}, r"noise_mode .* from 1 to 2.*=3"),
        (
            {"noise_kind": "anisotropic", "n_noise_directions": 11},
            r"n_noise_directions .* mode 1, 10.*=11",
        ),
        ({"noise_kind": "anisotropic", "noise_ratio": 0}, r"noise_ratio must be .*=0"),
    ],
)
def test_errors_name_the_argument_its_value_and_what_would_be_right(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_tensor_regression(**kwargs)
