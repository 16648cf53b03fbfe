"""Displays of pipelines, which show the last step."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from holrr import HOLRRCV, standard_errors
from problems import toy

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from holrr import plotting

X, Y = toy(n=60)


@pytest.fixture(scope="module")
def models():
    """A pipeline, its last step, and the inputs of that step."""
    pipeline = make_pipeline(StandardScaler(), HOLRRCV([0.1, 1.0], cv=3)).fit(X, Y)
    return pipeline, pipeline[-1], pipeline[0].transform(X)


def test_displays_without_data_show_the_last_step(models):
    pipeline, last, _ = models
    found, expected = (plotting.LoadingsDisplay.from_estimator(m) for m in (pipeline, last))
    for a, b in zip(found.loadings, expected.loadings, strict=True):
        assert_allclose(a, b)
    found, expected = (plotting.RankSurfaceDisplay.from_estimator(m) for m in (pipeline, last))
    assert_allclose(found.surface, expected.surface)


def test_displays_with_data_transform_the_inputs(models):
    pipeline, last, inputs = models
    make = plotting.PredictionDisplay.from_estimator
    found, expected = make(pipeline, X, Y), make(last, inputs, Y)
    assert_allclose(found.y_pred, expected.y_pred)
    blocks = {"a": X[:, :2], "b": X[:, 2:]}
    model = make_pipeline(HOLRRCV([0.1, 1.0], blocks="auto", cv=3)).fit(blocks, Y)
    make = plotting.BlockScoresDisplay.from_estimator
    found, expected = make(model, blocks, Y), make(model[-1], blocks, Y)
    assert_allclose(found.scores, expected.scores)
    assert np.isfinite(found.scores).all()


def test_standard_errors_of_a_pipeline_are_those_of_its_last_step(models):
    pipeline, step, transformed = models
    found = standard_errors(pipeline, X, Y, n_groups=4, stability=False)
    expected = standard_errors(step, transformed, Y, n_groups=4, stability=False)
    assert_allclose(found.intercept.std_error, expected.intercept.std_error)
