"""Leading eigenpairs by products alone: as good as a decomposition, or not taken."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from holrr.core import subspace


def matrix(n, spectrum, scale=1.0):
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(n, n)))[0]
    lam = np.concatenate([spectrum, 1e-3 * np.linspace(1, 0, n - len(spectrum))])
    return scale * ((Q * lam) @ Q.T), scale * lam


@pytest.mark.parametrize("n", [511, 512, 600])
@pytest.mark.parametrize("k", [1, 4, 68])  # the last is too much of a matrix of this size
@pytest.mark.parametrize("scale", [1e-250, 1.0, 1e250])
def test_pairs_are_those_of_a_decomposition(xp, n, k, scale):
    A, expected = matrix(n, [3.0, 2.0, 2.0, 1.0], scale)
    lam, U = subspace.leading_pairs(xp.asarray(A), k)
    assert isinstance(lam, np.ndarray)
    assert xp.owns(U)
    U = xp.to_numpy(U)
    assert U.shape == (n, k)
    assert len(lam) >= k
    assert_allclose(lam[:k], expected[:k], rtol=1e-9, atol=1e-12 * scale)
    assert_allclose(U.T @ U, np.eye(k), atol=1e-12)
    assert_allclose(A / scale @ U, U * lam[:k] / scale, atol=1e-13)
    assert (U[np.abs(U).argmax(0), range(k)] > 0).all()


@pytest.mark.parametrize(
    ("spectrum", "taken"),
    [
        ([3.0, 2.0, 1.5, 1.0], True),
        ([3 - i / 150 for i in range(300)], False),
        ([], False),
        ([0.0], False),
    ],
)
def test_a_spectrum_without_a_gap_is_decomposed(xp, spectrum, taken, monkeypatch):
    if "device1" not in xp.name:
        pytest.skip("this library is on the host, where nothing is iterated")
    asked = []
    whole = subspace.eigh_top
    monkeypatch.setattr(subspace, "eigh_top", lambda A, k: asked.append(k) or whole(A, k))
    A = matrix(600, spectrum)[0] if spectrum != [0.0] else np.zeros((600, 600))
    lam, U = subspace.leading_pairs(xp.asarray(A), 4)
    assert asked == ([] if taken else [4])
    U = xp.to_numpy(U)
    assert_allclose(lam[:4], np.linalg.eigvalsh(A)[::-1][:4], atol=1e-12)
    assert_allclose(A @ U, U * lam[:4], atol=1e-12)
