"""Naive implementations to test against: dense algebra, Kronecker products, loops over samples.

Each is written from the formulas of the paper (Rabusseau and Kadri, arXiv:1602.06863), with its
errors corrected, and shares no code with the package. Data are not centred: centre them first
(`centre`) to compare with a fit that has an intercept.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import scipy.linalg

# ---------------------------------------------------------------- tensors


def unfold(T, mode):
    """Mode-`mode` unfolding: one row for each index of the mode."""
    return np.stack([np.take(T, i, axis=mode).ravel() for i in range(T.shape[mode])])


def mode_product(T, M, mode):
    """``T x_mode M`` by its definition, one slice of the result after the other."""
    slices = [
        sum(M[a, i] * np.take(T, i, axis=mode) for i in range(T.shape[mode]))
        for a in range(M.shape[0])
    ]
    return np.stack(slices, axis=mode)


def kronecker(*matrices):
    return reduce(np.kron, matrices)


def tucker_to_dense(core, factors):
    """``vec(T) = (U0 kron ... kron Up) vec(G)``, the last mode quickest."""
    shape = tuple(U.shape[0] for U in factors)
    return (kronecker(*factors) @ np.ravel(core)).reshape(shape)


def multilinear_rank(T, tol=1e-8):
    """Numerical rank of every unfolding, relative to the tensor's norm."""
    scale = max(np.linalg.norm(T), np.finfo(float).tiny)
    return tuple(
        int((np.linalg.svd(unfold(T, i), compute_uv=False) > tol * scale).sum())
        for i in range(T.ndim)
    )


def tail_energy(T, mode, R):
    """Energy of an unfolding beyond its R leading singular values."""
    if T.size == 0:  # inputs without any variance
        return 0.0
    return float((np.linalg.svd(unfold(T, mode), compute_uv=False)[R:] ** 2).sum())


# ---------------------------------------------------------------- regression problems


def centre(X, Y, fit_intercept=True, w=None):
    """Data less their (weighted) means, which are zero where no intercept is fitted."""
    w = np.ones(len(X)) if w is None else np.asarray(w, float)
    if not fit_intercept:
        return X, Y, np.zeros(X.shape[1:]), np.zeros(Y.shape[1:])
    mx = sum(w[n] * X[n] for n in range(len(X))) / w.sum()
    my = sum(w[n] * Y[n] for n in range(len(Y))) / w.sum()
    return X - mx, Y - my, mx, my


def objective(X, Y, W, alpha, intercept=0.0, w=None):
    """``sum_n w_n ||<x_n, W> + b - Y_n||^2 + alpha ||W||^2``, sample by sample."""
    w = np.ones(len(X)) if w is None else w
    errors = [
        w[n] * np.sum((np.tensordot(X[n], W, axes=1) + intercept - Y[n]) ** 2)
        for n in range(len(X))
    ]
    return float(sum(errors) + alpha * np.sum(W**2))


def augment(X, Y, alpha):
    """The ridge penalty as extra samples: ``sqrt(alpha) I`` under X, zeros under Y."""
    d0 = X.shape[1]
    return np.vstack([X, np.sqrt(alpha) * np.eye(d0)]), np.concatenate(
        [Y, np.zeros((d0, *Y.shape[1:]))]
    )


def ridge(X, Y, alpha):
    """Ridge coefficients of least norm, from a least-squares solve of the augmented system."""
    Xa, Ya = augment(X, Y, alpha)
    W = np.linalg.lstsq(Xa, Ya.reshape(len(Ya), -1), rcond=None)[0]
    return W.reshape(X.shape[1], *Y.shape[1:])


def whiten(X, Y, alpha):
    """``(Q, Z, r)``: a basis of the inputs' range, Z = Q'Y and the ridge objective r.

    For the augmented data ``objective(W) = r + ||Q'(W x_0 X~) - Z||^2``.
    """
    Xa, Ya = augment(X, Y, alpha)
    Q = scipy.linalg.orth(Xa)
    Z = np.tensordot(Q.T, Ya, axes=1)
    r = float(np.sum((Ya - np.tensordot(Q, Z, axes=1)) ** 2))
    return Q, Z, r


def unwhiten(X, Y, alpha, Q, V):
    """The coefficients W of least norm with ``W x_0 X~ = Q V``."""
    Xa, _ = augment(X, Y, alpha)
    QV = (Q @ V.reshape(Q.shape[1], -1)).reshape(len(Xa), -1)
    return np.linalg.lstsq(Xa, QV, rcond=None)[0].reshape(X.shape[1], *Y.shape[1:])


def lower_bound(X, Y, alpha, rank):
    """``r + max_i sum_{j > R_i} sigma_j(Z_(i))^2``."""
    _, Z, r = whiten(X, Y, alpha)
    return r + max(tail_energy(Z, i, R) for i, R in enumerate(rank))


def ridge_std(X, Y, new, alpha, *, w=None, fit_intercept=True):
    """Noise of each output and standard deviations of new observations, from dense formulas."""
    w = np.ones(len(X)) if w is None else w
    n = w.sum()
    mx = w @ X / n if fit_intercept else np.zeros(X.shape[1])
    my = np.tensordot(w, Y, 1) / n if fit_intercept else np.zeros(Y.shape[1:])
    Xc, Yc = X - mx, Y - my
    S = np.linalg.pinv(Xc.T @ (w[:, None] * Xc) + alpha * np.eye(X.shape[1]))
    residual = Yc - np.tensordot(Xc @ S @ (Xc.T * w), Yc, 1)
    df = np.trace(S @ Xc.T @ (w[:, None] * Xc)) + fit_intercept
    noise = np.sqrt(np.tensordot(w, residual**2, 1) / (n - df))
    h = np.einsum("ij,jk,ik->i", new - mx, S, new - mx)
    return noise, np.multiply.outer(np.sqrt(1 + fit_intercept / n + h), noise)


# ---------------------------------------------------------------- the paper's results


def theorem_1_core(X, Y, factors, alpha):
    """The best core for given factors: least squares on the Kronecker design."""
    Xa, Ya = augment(X, Y, alpha)
    design = kronecker(Xa @ factors[0], *factors[1:])
    core = np.linalg.lstsq(design, Ya.ravel(), rcond=None)[0]
    return core.reshape([U.shape[1] for U in factors])


def theorem_1_formula(X, Y, factors, alpha):
    """The best core by the formula of Theorem 1, in terms of X and Y."""
    U0 = factors[0]
    A = U0.T @ (X.T @ X + alpha * np.eye(X.shape[1])) @ U0
    core = mode_product(Y, np.linalg.solve(A, U0.T @ X.T), 0)
    for i, U in enumerate(factors[1:], start=1):
        core = mode_product(core, U.T, i)
    return core


def algorithm_1(X, Y, rank, alpha):
    """Algorithm 1, line by line, with its non-symmetric eigenproblem. Returns the dense W.

    `Y_(i)` is the unfolding along output mode i, axis i of the stacked tensor. The eigenvectors
    for U0 are not orthonormal; only their span matters. Those of eigenvalue zero add nothing to W
    and are left out, since a non-symmetric solver may return them linearly dependent.
    """
    d0 = X.shape[1]
    Y0 = unfold(Y, 0)
    M = np.linalg.inv(X.T @ X + alpha * np.eye(d0)) @ X.T @ Y0 @ Y0.T @ X
    lam, vectors = np.linalg.eig(M)
    lam, vectors = np.real(lam), np.real(vectors)
    top = [j for j in np.argsort(-lam)[: rank[0]] if lam[j] > 1e-12 * lam.max()]
    U0 = vectors[:, top]
    factors = [U0]
    for i, R in enumerate(rank[1:], start=1):
        lam, vectors = np.linalg.eigh(unfold(Y, i) @ unfold(Y, i).T)
        factors.append(vectors[:, np.argsort(-lam)[:R]])
    return tucker_to_dense(theorem_1_formula(X, Y, factors, alpha), factors)


def lrr_closed_form(X, Y, rank, alpha):
    """``W_RLS Pi``: the ridge solution projected on the top eigenvectors of Y'PY (section 2.3).

    With a penalty, ``P = X (X'X + alpha I)^-1 X'``, which is no projection.
    """
    Y0 = unfold(Y, 0)
    W = unfold(ridge(X, Y, alpha), 0)
    fitted = X @ W  # PY
    lam, vectors = np.linalg.eigh(Y0.T @ fitted)
    top = vectors[:, np.argsort(-lam)[:rank]]
    return (W @ top @ top.T).reshape(X.shape[1], *Y.shape[1:])


def lrr_alternating(X, Y, rank, alpha, rng, n_iter=2000):
    """``W = A B`` by block-wise exact minimisation from a random start."""
    Y0 = unfold(Y, 0)
    C = X.T @ X + alpha * np.eye(X.shape[1])
    A = rng.normal(size=(X.shape[1], rank))
    for _ in range(n_iter):
        A = np.linalg.qr(A)[0]
        B = np.linalg.solve(A.T @ C @ A, A.T @ X.T @ Y0)
        B = np.linalg.qr(B.T)[0].T
        A = np.linalg.solve(C, X.T @ Y0 @ B.T)
    return (A @ B).reshape(X.shape[1], *Y.shape[1:])


# ---------------------------------------------------------------- feasible tensors


def random_orthonormal(rng, n, k):
    return np.linalg.qr(rng.normal(size=(n, k)))[0]


def random_feasible(X, Y, alpha, rank, rng):
    """Coefficients with random subspaces of the given ranks and the best core for these."""
    shape = (X.shape[1], *Y.shape[1:])
    factors = [random_orthonormal(rng, d, R) for d, R in zip(shape, rank, strict=True)]
    return tucker_to_dense(theorem_1_core(X, Y, factors, alpha), factors)


def project(Z, factors):
    """Z projected onto the subspaces that the orthonormal factors span."""
    for i, U in enumerate(factors):
        Z = mode_product(Z, U @ U.T, i)
    return Z


def hooi(Z, rank, rng, n_iter=60):
    """Higher-order orthogonal iteration from a random start, with full SVDs."""
    rank = [min(R, d) for R, d in zip(rank, Z.shape, strict=True)]
    factors = [random_orthonormal(rng, d, R) for d, R in zip(Z.shape, rank, strict=True)]
    for _ in range(n_iter):
        for i, R in enumerate(rank):
            reduced = Z
            for j, U in enumerate(factors):
                if j != i:
                    reduced = mode_product(reduced, U.T, j)
            factors[i] = np.linalg.svd(unfold(reduced, i))[0][:, :R]
    return project(Z, factors)


# ---------------------------------------------------------------- moments


def moments(X, Y, w=None):
    """Two-pass weighted moments, sample by sample, as a dict."""
    w = np.ones(len(X)) if w is None else np.asarray(w, float)
    Xc, Yc, mx, my = centre(X, Y, w=w)
    p = Y.ndim - 1
    return {
        "n_samples": len(X),
        "weight": float(w.sum()),
        "mean_x": mx,
        "mean_y": my,
        "Sxx": sum(w[n] * np.multiply.outer(Xc[n], Xc[n]) for n in range(len(X))),
        "Sxy": sum(w[n] * np.multiply.outer(Xc[n], Yc[n]) for n in range(len(X))),
        "syy": float(sum(w[n] * np.sum(Yc[n] ** 2) for n in range(len(X)))),
        "response_grams": [
            sum(w[n] * unfold(Yc[n], i) @ unfold(Yc[n], i).T for n in range(len(X)))
            for i in range(p)
        ],
    }


# ---------------------------------------------------------------- averages of penalties


def chances_of_penalties(hats, Y, freedom, n_rounds=30):
    """Posterior probabilities of penalties for each output, (n_penalties, D), by empirical Bayes.

    With the symmetric hat matrix H of a penalty, the outputs are normal with the covariance
    sigma^2 (I - H)^-1. The prior probabilities come from the EM algorithm.

    Parameters
    ----------
    hats : list of arrays of shape (n, n)
    Y : array of shape (n, D)
        Centred outputs, times the roots of the weights.
    freedom : float
        Effective number of samples.
    """
    logs = []
    for H in hats:
        kept = 1 - np.linalg.eigvalsh((H + H.T) / 2)
        n = max(freedom, (1 - kept > 1e-10).sum())
        noise = (Y * (Y - H @ Y)).sum(axis=0)
        logs.append(np.log(kept).sum() / 2 - n / 2 * np.log(noise))
    likelihood, prior = np.exp(logs - np.max(logs, axis=0)), np.ones(len(hats))
    for _ in range(n_rounds):
        posterior = prior[:, None] * likelihood
        posterior /= posterior.sum(axis=0)
        prior = posterior.mean(axis=1)
    posterior = prior[:, None] * likelihood
    return posterior / posterior.sum(axis=0)
