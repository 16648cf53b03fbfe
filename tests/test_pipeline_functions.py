"""Intervals, parts of predictions and standard errors of fitted pipelines."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from holrr import (
    HOLRR,
    HOLRRCV,
    RLS,
    RLSCV,
    predict_blocks,
    predict_interval,
    score_blocks,
    standard_errors,
)
from problems import toy

X, Y = toy(40)
SCALED = StandardScaler().fit_transform(X)
BLOCKS = {"first": [0, 1], "rest": list(range(2, X.shape[1]))}


def test_intervals_of_a_pipeline_are_those_of_its_last_step():
    pipeline = make_pipeline(StandardScaler(), HOLRRCV(cv=3)).fit(X, Y)
    alone = HOLRRCV(cv=3).fit(SCALED, Y)
    for kind in ("entry", "pooled", "simultaneous"):
        expected = alone.predict_interval(SCALED, 0.7, kind)
        assert_allclose(predict_interval(pipeline, X, 0.7, kind), expected)
    assert_allclose(predict_interval(alone, SCALED), alone.predict_interval(SCALED))


def test_intervals_of_nested_pipelines_and_grid_searches():
    inner = Pipeline([("search", RLSCV(cv=3))])
    grid = GridSearchCV(inner, {"search__fit_intercept": [True, False]}, cv=2)
    pipeline = make_pipeline(StandardScaler(), grid).fit(X, Y)
    best = pipeline[-1].best_estimator_[-1]
    assert_allclose(predict_interval(pipeline, X), best.predict_interval(SCALED))


def test_blocks_of_a_pipeline_are_those_of_its_last_step():
    pipeline = make_pipeline(StandardScaler(), RLS(blocks=BLOCKS)).fit(X, Y)
    parts = predict_blocks(pipeline, X)
    assert list(parts) == ["first", "rest", "intercept"]
    assert_allclose(sum(parts.values()), pipeline.predict(X))
    shares = score_blocks(pipeline, X, Y)
    assert_allclose(sum(shares.values()), pipeline.score(X, Y))
    of_outputs = score_blocks(pipeline, X, Y, np.arange(40.0), average=None)
    expected = pipeline[-1].score_blocks(SCALED, Y, np.arange(40.0), average=None)
    assert_allclose(of_outputs["rest"], expected["rest"])


def test_standard_errors_of_a_pipeline_are_those_of_its_last_step():
    pipeline = make_pipeline(StandardScaler(), HOLRR(rank=2)).fit(X, Y)
    found = standard_errors(pipeline, X, Y, n_groups=5, predict_at=X[:3])
    expected = standard_errors(HOLRR(rank=2), SCALED, Y, n_groups=5, predict_at=SCALED[:3])
    assert_allclose(found.coef.std_error, expected.coef.std_error)
    assert_allclose(found.predictions.std_error, expected.predictions.std_error)


@pytest.mark.parametrize("model", [Ridge(), make_pipeline(StandardScaler(), Ridge())])
def test_other_models_are_refused(model):
    with pytest.raises(TypeError, match="a pipeline that ends with one; got Ridge"):
        predict_interval(model.fit(X, Y[:, 0, 0]), X)


def test_a_pipeline_must_be_fitted():
    with pytest.raises(NotFittedError):
        predict_interval(make_pipeline(StandardScaler(), HOLRRCV()), X)


def test_the_last_step_must_have_what_is_asked_for():
    pipeline = make_pipeline(StandardScaler(), HOLRR()).fit(X, Y)
    with pytest.raises(AttributeError, match="HOLRR has no predict_interval"):
        predict_interval(pipeline, X)
    with pytest.raises(ValueError, match="predict_blocks needs blocks of inputs"):
        predict_blocks(pipeline, X)
