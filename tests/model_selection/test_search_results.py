"""`cv_results_` is a dictionary, whichever of its values are computed late."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from holrr import HOLRRCV
from holrr.core.results import Deferred, Results
from problems import toy


@pytest.fixture
def results():
    calls = []

    def compute():
        calls.append(1)
        return np.arange(3.0)

    found = Results(alphas=[1.0, 2.0], mean_mse=Deferred(compute), null_mse=4.0)
    found.calls = calls
    return found


@pytest.mark.parametrize(
    "read",
    [
        lambda r: r["mean_mse"],
        lambda r: r.get("mean_mse"),
        lambda r: dict(r)["mean_mse"],
        lambda r: {**r}["mean_mse"],
        lambda r: ({} | r)["mean_mse"],
        lambda r: dict(r.items())["mean_mse"],
        lambda r: list(r.values())[1],
        lambda r: r.copy()["mean_mse"],
        lambda r: copy.copy(r)["mean_mse"],
        lambda r: copy.deepcopy(r)["mean_mse"],
        lambda r: pickle.loads(pickle.dumps(r))["mean_mse"],
        lambda r: r.pop("mean_mse"),
        lambda r: r.pop("mean_mse", None),
        lambda r: r.setdefault("mean_mse", None),
        lambda r: {key: r[key] for key in r.keys()}["mean_mse"],  # noqa: SIM118
    ],
)
def test_every_way_of_reading_gives_the_value(results, read):
    assert_array_equal(read(results), np.arange(3.0))


def test_values_are_computed_once_and_only_if_they_are_read(results):
    assert list(results) == ["alphas", "mean_mse", "null_mse"]
    assert len(results) == 3
    assert "mean_mse" in results
    assert results["null_mse"] == 4.0
    assert not results.calls
    for _ in range(2):
        assert_array_equal(results["mean_mse"], np.arange(3.0))
    assert len(results.calls) == 1
    assert "array" in repr(results)


def test_missing_keys_behave_as_in_a_dictionary(results):
    assert results.get("other", 5) == 5
    assert results.pop("other", 6) == 6
    for read in (lambda: results["other"], lambda: results.pop("other")):
        with pytest.raises(KeyError, match="other"):
            read()


def test_scaled_values_stay_deferred(results):
    twice = results.scaled(["mean_mse", "null_mse"], 2.0)
    assert not results.calls
    assert twice["null_mse"] == 8.0
    assert_array_equal(twice["mean_mse"], 2 * np.arange(3.0))
    assert_array_equal(results["mean_mse"], np.arange(3.0))


def test_results_of_a_search_can_be_read_in_any_order():
    X, Y = toy(n=40)
    one, two = (HOLRRCV(alphas=[0.1, 1.0]).fit(X, Y).cv_results_ for _ in range(2))
    std = one["std_mse"]
    np.testing.assert_allclose(std, two["fold_mse"].std(axis=0), rtol=1e-9)
    np.testing.assert_allclose(one["mean_mse"], one["fold_mse"].mean(axis=0), rtol=1e-12)
