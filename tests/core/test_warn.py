"""Warnings point at the line of the user's program."""

import pytest
from sklearn.pipeline import make_pipeline

from holrr import RLS, RLSCV
from problems import toy


def test_warning_points_at_the_caller():
    X, Y = toy()
    model = RLS().fit(X, Y)
    with pytest.warns(UserWarning, match="partial_fit starts from an empty model") as record:
        model.partial_fit(X, Y)
    assert record[0].filename == __file__


def test_warning_points_at_the_caller_through_a_pipeline():
    X, Y = toy()
    with pytest.warns(UserWarning, match="The best penalty") as record:
        make_pipeline(RLSCV(alphas=[10.0, 100.0, 1000.0])).fit(X, Y)
    assert record[0].filename == __file__
