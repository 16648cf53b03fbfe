"""Naive kernel regression to test against: explicit features, and Algorithm 2 of the paper."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import factorial

import numpy as np

import reference


def top_eigenvectors(M, k):
    """Leading right eigenvectors of a matrix with real, non-negative eigenvalues."""
    lam, vectors = np.linalg.eig(M)
    order = np.argsort(-np.real(lam))[:k]
    return np.real(lam[order]), np.real(vectors[:, order])


def algorithm_2(K, Y, rank, gamma):
    """Algorithm 2, line by line, with its non-symmetric eigenproblem. Returns the dense C."""
    eye = np.eye(len(K))
    Y0 = reference.unfold(Y, 0)
    A = top_eigenvectors(np.linalg.inv(K + gamma * eye) @ Y0 @ Y0.T @ K, rank[0])[1]
    factors = []
    for i, R in enumerate(rank[1:], start=1):
        lam, U = np.linalg.eigh(reference.unfold(Y, i) @ reference.unfold(Y, i).T)
        factors.append(U[:, np.argsort(-lam)[:R]])
    M = np.linalg.inv(A.T @ K @ (K + gamma * eye) @ A) @ A.T @ K
    G = reference.mode_product(Y, M, 0)
    for i, U in enumerate(factors, start=1):
        G = reference.mode_product(G, U.T, i)
    return reference.tucker_to_dense(G, [A, *factors])


def polynomial_features(X, degree, coef0=1.0):
    """Features whose inner products are ``(x'z + coef0)^degree``: all monomials of (x, sqrt(c))."""
    Xa = np.hstack([X, np.full((len(X), 1), np.sqrt(coef0))])
    columns = []
    for index in combinations_with_replacement(range(Xa.shape[1]), degree):
        multiplicity = factorial(degree)
        for count in np.bincount(index):
            multiplicity //= factorial(count)
        columns.append(np.sqrt(multiplicity) * np.prod(Xa[:, index], axis=1))
    return np.stack(columns, axis=1)
