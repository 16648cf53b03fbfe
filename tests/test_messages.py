"""Errors of wrong calls name the class and the method that the user called, and what is right."""

from __future__ import annotations

import numpy as np
import pytest

from holrr import HOLRR, HOLRRCV, KernelRLS
from problems import toy

X, Y = toy(20)


def test_a_fit_without_outputs_names_the_class_and_y(row):
    model = row.make()
    name = type(model).__name__
    with pytest.raises(TypeError, match=rf"^{name}\.fit\(\) needs y\. Call fit\(X, y\)\.$"):
        model.fit(X)
    with pytest.raises(ValueError, match=rf"^{name} requires y to be passed, but the target y is "):
        model.fit(X, None)
    assert not hasattr(model, "n_features_in_")


def test_an_unknown_argument_of_fit_names_the_class_and_the_nearest_one(row):
    model = row.make()
    expected = rf"^{type(model).__name__}\.fit\(\) has no argument 'sample_weights'. Did you mean "
    with pytest.raises(TypeError, match=expected + r"sample_weight\?$"):
        model.fit(X, Y, sample_weights=np.ones(20))


def test_an_unknown_parameter_names_the_nearest_one(row):
    cls, names = type(row.estimator), list(row.params)
    for wrong, right in ((names[0] + "x", names[0]), ("fit_intercepts", "fit_intercept")):
        expected = rf"^{cls.__name__}\(\) has no parameter '{wrong}'. Did you mean {right}\?$"
        with pytest.raises(TypeError, match=expected):
            cls(**{wrong: 1})
        expected = rf"^Invalid parameter '{wrong}' for estimator {cls.__name__}. Did you mean "
        with pytest.raises(ValueError, match=expected + rf"{right}\?$"):
            row.make(**{wrong: 1})


def test_the_rank_of_a_search_is_its_largest_rank():
    with pytest.raises(TypeError, match=r"^HOLRRCV\(\) has no parameter 'rank'. Did you mean max_"):
        HOLRRCV(rank=2)


def test_all_parameters_are_listed_if_none_is_near():
    with pytest.raises(TypeError, match=r"no parameter 'zzz'. It has: rank, alpha, .* tol\.$"):
        HOLRR(zzz=2)


def test_few_parameters_are_passed_by_position():
    message = r"^HOLRR\(\) takes rank, alpha by position; got 3\. Pass the others by name\.$"
    with pytest.raises(TypeError, match=message):
        HOLRR(2, 1.0, True)


@pytest.mark.parametrize("method", ["predict", "transform", "score"])
def test_other_methods_name_the_class(method):
    model = HOLRRCV(cv=3).fit(X, Y)
    needs = "X and y. Call score(X, y)" if method == "score" else f"X. Call {method}(X)"
    with pytest.raises(TypeError) as error:
        getattr(model, method)()
    assert str(error.value) == f"HOLRRCV.{method}() needs {needs}."


def test_batches_name_the_class():
    with pytest.raises(TypeError, match=r"^KernelRLS\.partial_fit\(\) needs y\."):
        KernelRLS(landmarks=5).partial_fit(X)


def test_errors_of_the_data_are_unchanged():
    class Broken:
        def __array__(self, *args, **kwargs):
            raise TypeError("no array")

    with pytest.raises(TypeError, match=r"^Invalid X: no array$"):
        HOLRR().fit(Broken(), Y)


def test_subclasses_are_named():
    class Mine(HOLRR):
        def __init__(self, rank=None):
            super().__init__(rank)

    with pytest.raises(TypeError, match=r"^Mine\.fit\(\) needs y"):
        Mine().fit(X)
    with pytest.raises(TypeError, match=r"^Mine\(\) has no parameter 'ranks'. Did you mean rank\?"):
        Mine(ranks=2)
