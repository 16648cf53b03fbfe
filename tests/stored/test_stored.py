"""Results of stored cases, and the comparison itself; `make stored` compares all cases."""

import copy

import numpy as np
import pytest
from compare import DIRECT, compare, explained, is_iterative, load, read_table, tolerance
from draw import ESTIMATORS, FEATURES
from evaluate import evaluate, make_data
from precise import CASES, data_of, truth, worse

ABOUT, STORED = load()
QUICK = [STORED[number - 1] for number in ABOUT["quick"]]
PARTS = 10


def small(wanted):
    """A quick case that fulfils a condition, and new results of it."""
    case = next(case for case in QUICK if "fit" not in case["results"] and wanted(case))
    return case, evaluate(case)


def is_exact(case):
    return tolerance(case) == DIRECT and not is_iterative(case)


@pytest.mark.parametrize("part", range(PARTS))
def test_quick_cases_have_the_stored_results(part):
    rows = read_table()
    found = [d for case in QUICK[part::PARTS] for d in compare(case, evaluate(case))]
    assert not [str(d) for d in found if explained(d, rows) is None]


def test_ill_conditioned_fits_are_as_near_to_fifty_digits_as_stored():
    assert not worse(ABOUT["precise"])


def test_stored_cases_have_all_features_and_quick_ones_all_estimators():
    assert {case["estimator"] for case in QUICK} == set(ESTIMATORS)
    features = {f"{slot}={option}" for slot, options in FEATURES.items() for option in options}
    assert {f for case in STORED for f in case["features"]} == features


@pytest.mark.parametrize("name", ["RLS", "LRR", "HOLRR"])
def test_fifty_digits_agree_with_double_precision_where_that_is_enough(name):
    case = next(c for c in CASES if c["estimator"] == name and c["condition"] == 3)
    X, Y, new, alpha = data_of(case)
    Xc, Yc = X - X.mean(0), (Y - Y.mean(0)).reshape(len(Y), -1)
    L = np.linalg.cholesky(Xc.T @ Xc + alpha * np.eye(X.shape[1]))
    Z = np.linalg.solve(L, Xc.T @ Yc)
    if name == "LRR":
        U, s, V = np.linalg.svd(Z, full_matrices=False)
        Z = (U[:, :2] * s[:2]) @ V[:2]
    if name == "HOLRR":
        T = Z.reshape(-1, *Y.shape[1:])
        for mode, rank in enumerate((2, 2, 1)):
            unfolded = np.moveaxis(Z.reshape(T.shape), mode, 0).reshape(T.shape[mode], -1)
            U = np.linalg.svd(unfolded)[0][:, :rank]
            T = np.moveaxis(np.tensordot(U @ U.T, T, (1, mode)), 0, mode)
        Z = T.reshape(Z.shape)
    W = np.linalg.solve(L.T, Z)
    predicted, coef = truth(case)
    np.testing.assert_allclose(coef.reshape(W.shape), W, rtol=0, atol=1e-8 * np.abs(W).max())
    expected = (new - X.mean(0)) @ W + Y.mean(0).ravel()
    np.testing.assert_allclose(predicted.reshape(expected.shape), expected, atol=1e-8)


def compared(case, found):
    """Results that deviate, without errors that are cross-fitted since."""
    crossed = ("held_out_mse_", "ridge_mse_")
    return [d.result for d in compare(case, found) if d.result not in crossed]


@pytest.mark.parametrize("estimator", ["RLS", "HOLRR", "LRRCV", "KernelRLS"])
@pytest.mark.parametrize("change", [1e-7, -1e-6])
def test_a_change_of_one_entry_is_a_deviation_of_a_direct_fit(estimator, change):
    case, found = small(
        lambda c: (
            c["estimator"] == estimator and is_exact(c) and "intercept=no" not in c["features"]
        )
    )
    assert compared(case, found) == []
    for name in ("predict", "intercept_"):
        wrong = copy.deepcopy(found)
        entries = np.atleast_1d(wrong[name])
        place = np.flatnonzero(np.isfinite(entries))[-1]
        entries.flat[place] += change * np.nanmax(np.abs(entries))
        wrong[name] = entries.reshape(np.shape(found[name]))
        assert compared(case, wrong) == [name]


def test_a_change_of_one_entry_of_a_long_array_is_a_deviation():
    case, found = small(
        lambda c: (
            is_exact(c) and "missing" not in c["data"] and np.prod(c["results"]["predict"][1]) > 40
        )
    )
    size = found["predict"].size
    for place in range(0, size, 7):
        wrong = dict(found, predict=found["predict"].copy())
        wrong["predict"].flat[place] += 1e-7 * np.abs(found["predict"]).max()
        assert [d.result for d in compare(case, wrong)] == ["predict"]
        wrong["predict"].flat[place] = np.nan
        assert "NaN" in compare(case, wrong)[0].text


def test_an_iterative_fit_may_improve_but_not_get_worse():
    case, found = small(lambda c: c["estimator"] == "TraceNormRegression")
    worse_fit = found | {"objective_": found["objective_"] * (1 + 1e-5)}
    assert [d.result for d in compare(case, worse_fit)] == ["objective_"]
    other = found | {"predict": found["predict"] * 1.1}
    assert [d.result for d in compare(case, other)] == ["predict"]
    better = other | {"objective_": found["objective_"] * (1 - 1e-3)}
    assert compare(case, better) == []


def test_a_search_may_choose_differently_only_where_errors_are_equal():
    case, found = small(
        lambda c: (
            c["estimator"] == "HOLRRCV"
            and c["params"].get("selection") == "min"
            and is_exact(c)
            and c["data"].get("kind") is None
        )
    )
    other = found | {"best_rank": found["best_rank"] + 1, "predict": found["predict"] * 1.1}
    assert compared(case, other) == []
    larger = other | {"error_at_choice": found["error_at_choice"] * (1 + 1e-8)}
    assert compared(case, larger) == ["choice"]


def test_errors_and_missing_results_are_deviations():
    case, found = small(lambda c: c["estimator"] == "RLS" and "std" in c["calls"])
    assert "std" in {d.result for d in compare(case, found | {"std": "!ValueError"})}
    del found["intercept_"]
    assert [d.result for d in compare(case, found)] == ["intercept_"]
    assert [d.result for d in compare(case, {**found, "fit": "!ValueError"})] == ["fit"]


def test_a_row_of_the_table_explains_only_what_it_names(tmp_path):
    case, found = small(lambda c: c["estimator"] == "RLS" and "std" in c["calls"])
    deviation = next(d for d in compare(case, found | {"std": "!ValueError"}) if d.result == "std")
    table = tmp_path / "table.toml"
    for words, explains in [
        ('results = ["std"]', True),
        ('estimators = ["RLS"]', True),
        (f"cases = [{case['number']}]", True),
        (f"features = {case['features']}", True),
        ('results = ["predict"]', False),
        ('estimators = ["LRR"]', False),
        ('features = ["no=feature"]', False),
    ]:
        table.write_text(f'[[deviation]]\nreason = "why"\n{words}\n')
        found = explained(deviation, read_table(table))
        assert found == "why" if explains else found is None
    table.write_text('[[deviation]]\nresults = ["std"]\n')
    with pytest.raises(ValueError, match="reason"):
        read_table(table)


def test_data_of_a_case_depend_on_its_description_only():
    case = QUICK[0]
    for a, b in zip(make_data(case).values(), make_data(case).values(), strict=True):
        np.testing.assert_array_equal(a, b)
