"""Ranks and penalties chosen by tools of scikit-learn, with tensor outputs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from holrr import HOLRR
from problems import low_rank_tensor


def data():
    rng = np.random.default_rng(0)
    W = low_rank_tensor(rng, (6, 4, 5), (2, 2, 3))
    X = rng.normal(size=(80, 6))
    return X, np.tensordot(X, W, axes=1) + 0.1 * rng.normal(size=(80, 4, 5))


def test_grid_search_over_rank_and_alpha_finds_the_true_rank():
    X, Y = data()
    ranks = [(1, 1, 1), (2, 2, 3), (2, 2, 1), None]
    search = GridSearchCV(HOLRR(), {"rank": ranks, "alpha": [1e-3, 1e3]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"rank": (2, 2, 3), "alpha": 1e-3}
    assert search.best_estimator_.rank_ == (2, 2, 3)
    assert search.predict(X).shape == Y.shape
    assert search.score(X, Y) > 0.9


def test_grid_search_over_parameters_of_a_pipeline_step():
    X, Y = data()
    pipe = make_pipeline(StandardScaler(), HOLRR(rank=(2, 2, 3)))
    search = GridSearchCV(pipe, {"holrr__alpha": [0.1, 1e4]}, cv=3).fit(X * 10.0, Y)
    assert search.best_params_ == {"holrr__alpha": 0.1}
    assert cross_val_score(pipe, X, Y, cv=3).min() > 0.8


def test_rank_above_the_number_of_features_raises_in_grid_search():
    X, Y = data()
    search = GridSearchCV(HOLRR(), {"rank": [(7, 1, 1)]}, cv=3, error_score="raise")
    with pytest.raises(ValueError, match=r"rank\[0\]"):
        search.fit(X, Y)
