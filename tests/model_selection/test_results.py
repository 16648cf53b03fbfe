"""A dictionary that finds some of its entries later behaves like one that has them."""

import copy
import json
import pickle

import numpy as np
import pytest

from holrr import RLSCV, load
from holrr.results import Later, Results

PLAIN = {"a": 1, "b": 2}


@pytest.fixture
def results():
    return Results(a=1, b=Later(lambda: 2))


@pytest.mark.parametrize(
    "look",
    [
        dict,
        lambda r: {**r},
        lambda r: dict(r.items()),
        lambda r: dict(zip(r.keys(), r.values(), strict=True)),
        lambda r: {key: r[key] for key in r},
        lambda r: {key: r.get(key) for key in r},
        lambda r: r.copy(),
        copy.copy,
        copy.deepcopy,
        lambda r: pickle.loads(pickle.dumps(r)),
        lambda r: json.loads(json.dumps(r)),
        lambda r: r | {},
        lambda r: {} | r,
        lambda r: {"b": r.pop("b"), "a": r.pop("a")},
        lambda r: dict([r.popitem(), r.popitem()]),
        lambda r: {"a": r.setdefault("a", 5), "b": r.setdefault("b", 5)},
    ],
)
def test_every_look_finds_the_entries(results, look):
    assert look(results) == PLAIN


def test_it_is_a_dict_and_equals_one(results):
    assert isinstance(results, dict)
    assert "b" in results
    assert len(results) == 2
    assert results == PLAIN
    assert results != {"a": 1, "b": 3}
    assert repr(results) == repr(PLAIN)
    assert results.pop("c", 5) == 5
    with pytest.raises(KeyError, match="c"):
        results.pop("c")


def test_an_entry_is_found_once_and_can_be_replaced():
    found = []
    results = Results(b=Later(lambda: found.append(1) or 7))
    assert "b" in results
    assert found == []
    assert (results["b"], results["b"], found) == (7, 7, [1])
    results["b"] = 8
    assert results["b"] == 8


def test_files_hold_the_entries_themselves(make_data, tmp_path):
    X, Y = make_data(n=30, d0=4, shape=(3,), seed=1)
    model = RLSCV(alphas=[0.1, 1.0, 10.0]).fit(X, Y)
    model.save(tmp_path / "model.holrr")
    again = load(tmp_path / "model.holrr").cv_results_
    np.testing.assert_array_equal(again["std_mse"], model.cv_results_["fold_mse"].std(axis=0))
    assert set(again) == set(model.cv_results_)
