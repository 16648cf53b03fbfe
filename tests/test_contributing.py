"""The estimator that CONTRIBUTING shows passes the checks of every estimator."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from holrr import LRR, KernelLRR, Moments
from problems import toy

GUIDE = Path(__file__).parents[1] / "CONTRIBUTING.md"


(CODE,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)


@pytest.fixture
def estimator(monkeypatch):
    module = types.ModuleType("contributed")
    monkeypatch.setitem(sys.modules, "contributed", module)  # where pickles look for it
    exec(CODE, vars(module))
    return module.EnergyRegressor


def test_the_example_estimator_is_short():
    assert len(CODE.splitlines()) <= 40


def test_the_example_estimator_passes_the_checks_of_scikit_learn(estimator):
    check_estimator(estimator())


def test_the_example_estimator_equals_lrr_with_the_same_share(estimator):
    X, Y = toy(noise=5.0)
    model = estimator(share=0.99).fit(X, Y)
    other = LRR(0.99).fit(X, Y)
    assert model.rank_ == other.rank_ > 1
    assert_allclose(model.coef_, other.coef_)


def test_the_example_estimator_has_the_methods_of_all_linear_estimators(estimator, tmp_path):
    X, Y = toy()
    w = np.random.default_rng(0).uniform(size=len(X))
    model = estimator().fit(X, Y, w)
    parts = estimator().partial_fit(X[:9], Y[:9], w[:9]).partial_fit(X[9:], Y[9:], w[9:])
    assert_allclose(parts.coef_, model.coef_, rtol=1e-9)
    moments = estimator().fit_moments(Moments.from_arrays(X, Y, w))
    assert_allclose(moments.coef_, model.coef_, rtol=1e-9)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert_allclose(clone(model).fit(mapped, Y, w).coef_, model.coef_, rtol=1e-9)
    assert model.lower_bound_ <= model.objective_
    with pytest.raises(ValueError, match="'share' parameter"):
        estimator(share=2.0).fit(X, Y)


def test_its_structure_works_for_kernels(estimator):
    class Kernel(KernelLRR):
        def _structure(self):
            return estimator(self.rank)._structure()

    X, Y = toy(noise=5.0)
    found, expected = Kernel(0.99).fit(X, Y), KernelLRR(0.99).fit(X, Y)
    assert found.tucker_.rank[0] == expected.rank_
    assert_allclose(found.predict(X), expected.predict(X))
