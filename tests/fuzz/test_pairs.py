"""Cases of known and of mended defects; test_fuzz.py has random ones, in the family `pairs`."""

from __future__ import annotations

import numpy as np
import pytest
from features import CANDIDATES, EXCLUDED, FEATURES, build, draw
from known import KNOWN, MENDED
from relations import RELATIONS, failures_of


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(
            one,
            id=one.words.replace(" ", "-"),
            marks=pytest.mark.xfail(strict=True, raises=AssertionError, reason=one.words),
        )
        for one in KNOWN
    ],
)
def test_known_defect(known):
    case = known.shown.case()
    failures = failures_of(case, known.shown.seed, [known.shown.relation])
    for name, reason in failures.items():
        if not known.explains(case, name, reason):
            raise LookupError(f"the defect does not explain the failure of {name}: {reason}")
    assert not failures


def test_mended_defects_stay_mended():
    for shown in MENDED:
        assert not failures_of(shown.case(), shown.seed, [shown.relation]), shown


def test_cases_are_reproducible():
    for seed in range(20):
        one, other = draw(seed), draw(seed)
        assert one.features == other.features
        np.testing.assert_array_equal(one.X, other.X)
        np.testing.assert_array_equal(one.Y, other.Y)


def test_another_feature_does_not_change_what_a_feature_draws():
    row = CANDIDATES[0]
    one = build(row, ["real_weights"], 3)
    other = build(row, ["real_weights", "as_xarray"], 3)
    np.testing.assert_array_equal(one.w, other.w)


def test_every_feature_and_every_relation_is_drawn():
    cases = [draw(seed) for seed in range(4000)]
    assert {name for case in cases for name in case.features} == set(FEATURES)
    unused = [
        name for name, one in RELATIONS.items() if not any(one.applies(case) for case in cases)
    ]
    assert not unused


def test_excluded_features_exist():
    names = {name for a, b, _ in EXCLUDED for name in (*a, *b)}
    assert names <= set(FEATURES)


def test_features_that_exclude_each_other_are_not_combined():
    linear = CANDIDATES[0]
    assert build(linear, ["robust_loss", "in_dask_arrays"], 0) is None
    assert build(linear, ["as_pandas", "as_polars"], 0) is None
