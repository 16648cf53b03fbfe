"""The naive loop: fit and predict for every fold, penalty and rank."""

from __future__ import annotations

import numpy as np
from sklearn import config_context

from holrr import HOLRR


def brute_force(X, Y, splits, alphas, shape, sample_weight=None, **parameters):
    """Mean squared error of every fold, penalty and rank, of shape (n_folds, n_alphas, *shape)."""
    w = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight)
    errors = np.empty((len(splits), len(alphas), *shape))
    with config_context(skip_parameter_validation=True):
        _fill(errors, X, Y, splits, alphas, w, parameters)
    return errors


def _fill(errors, X, Y, splits, alphas, w, parameters):
    for k, (train, test) in enumerate(splits):
        for a, alpha in enumerate(alphas):
            for index in np.ndindex(*errors.shape[2:]):
                rank = tuple(i + 1 for i in index)
                model = HOLRR(rank=rank, alpha=alpha, **parameters)
                model.fit(X[train], Y[train], w[train])
                errors[(k, a, *index)] = weighted_mse(model.predict(X[test]), Y[test], w[test])


def weighted_mse(predicted, Y, w):
    """Mean over the outputs and, weighted, over the samples."""
    squares = ((predicted - Y) ** 2).reshape(len(Y), -1).mean(axis=1)
    return (w * squares).sum() / w.sum()
