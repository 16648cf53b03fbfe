"""Defects that the pairs of features have found and that are not mended yet.

A row describes a defect, the failures that it explains, and a case that shows it. `test_pairs.py`
expects the case to fail. When the defect is mended, that test passes: remove the row, and move its
case to `MENDED`, so that it stays a test.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from features import CANDIDATES, build
from paired import Case

from registry import Row


@dataclass(frozen=True)
class Shown:
    """A case, by estimator, features and seed, and the relation that it breaks."""

    row: str
    features: tuple[str, ...]
    seed: int
    relation: str

    def case(self) -> Case:
        found = build(row_of(self.row), self.features, self.seed)
        if found is None:
            raise LookupError(f"no case of {self.row} has all of {self.features}")
        return found


@dataclass(frozen=True)
class Known:
    words: str
    # Of a case, the name of a relation and the reason why it does not hold.
    explains: Callable[[Case, str, str], bool]
    shown: Shown


def row_of(words: str) -> Row:
    """The first row of the registry whose estimator is written so."""
    return next(row for row in CANDIDATES if row.id.startswith(words))


def about(reason: str, *words: str) -> bool:
    return any(word in reason for word in words)


def size_of(reason: str) -> float:
    """The relative difference that a reason names; infinite where it names none."""
    found = re.search(r"differs by (\S+) of its size", reason)
    return float(found[1]) if found else np.inf


UNCERTAIN = ("std differs", "noise differs", "std:", "noise:", "lower ", "upper ", "coverage=")


def wide(case: Case) -> bool:
    """A fold has as few samples with weight as inputs."""
    w = np.ones(case.n) if case.w is None else case.w
    trains = [np.arange(case.n)] if case.splits is None else [train for train, _ in case.splits]
    return min(np.count_nonzero(w[train]) for train in trains) <= case.X.shape[1] + 1


def without_weight(case: Case) -> bool:
    return any(v is not None and (v == 0).any() for v in case.output_weight or [])


KNOWN = [
    Known(
        "pooled intervals of overlapping splits depend on the order of the rows, and simultaneous "
        "ones with missing outputs",
        lambda case, relation, reason: (
            "other_splits" in case.features
            and (
                about(reason, "lower pooled", "upper pooled")
                or (case.incomplete and about(reason, "lower simultaneous", "upper simultaneous"))
            )
        ),
        Shown("RLSCV(", ("other_splits",), 2, "permuted_rows"),
    ),
    Known(
        "noise of low-rank fits and pooled intervals count outputs of weight zero",
        lambda case, relation, reason: without_weight(case) and about(reason, *UNCERTAIN),
        Shown("LRR(", ("weights_of_outputs",), 0, "never_observed_left_out"),
    ),
    Known(
        "deviations of kernel models and of searches with no more samples than inputs count rows "
        "and not their weights",
        lambda case, relation, reason: (
            relation in ("integer_weights_are_repetitions", "rows_of_weight_zero_left_out")
            and (case.kernel or (case.row.searches and wide(case)))
            and about(reason, *UNCERTAIN)
        ),
        Shown("KernelRLSCV(", ("integer_weights",), 0, "integer_weights_are_repetitions"),
    ),
    Known(
        "a constant input changes the deviations of searches where it makes inputs as many as "
        "samples of a fold",
        lambda case, relation, reason: (
            relation == "constant_input_added"
            and case.row.searches
            and wide(case)
            and about(reason, *UNCERTAIN)
        ),
        Shown("RLSCV(", ("few_samples",), 0, "constant_input_added"),
    ),
    Known(
        "deviations of kernel models depend on rounding where the Gram matrix is nearly singular",
        lambda case, relation, reason: (
            case.kernel
            and (int((np.ptp(case.X, axis=0) > 0).sum()) <= 2 or size_of(reason) < 1e-3)
            and about(reason, *UNCERTAIN)
        ),
        Shown(
            "KernelHOLRR(alpha=0.5",
            ("three_output_modes", "constant_input", "real_weights"),
            1078195409,
            "permuted_rows",
        ),
    ),
    Known(
        "deviations with a penalty for each output use one penalty for all outputs",
        lambda case, relation, reason: (
            (case.alpha_of is not None or bool(case.param("alpha_per_output")))
            and about(reason, *UNCERTAIN)
        ),
        Shown("RLS()", ("penalty_of_each_output",), 0, "penalties_of_outputs_are_separate_fits"),
    ),
    Known(
        "deviations ignore the distance to training inputs where the only input is constant",
        lambda case, relation, reason: (
            bool((np.ptp(case.X, axis=0) == 0).all()) and about(reason, *UNCERTAIN)
        ),
        Shown("RLS()", ("one_input", "constant_input"), 0, "constant_input_added"),
    ),
    Known(
        "ONNX graphs lose intercepts of one output that are too small for single precision",
        lambda case, relation, reason: (
            relation == "onnx_predicts_the_same" and case.Y[0].size == 1 and case.scale < 1e-37
        ),
        Shown("RLS()", ("scalar_outputs", "extreme_units"), 6, "onnx_predicts_the_same"),
    ),
    Known(
        "the rank of a stack counts models whose weight is zero but for rounding",
        lambda case, relation, reason: case.stacks and about(reason, "rank_ is"),
        Shown(
            "KernelHOLRRCV(",
            ("default_grid", "integer_weights", "as_flat"),
            942,
            "permuted_outputs",
        ),
    ),
    Known(
        "the directions of input modes are not refined with missing='ignore'",
        lambda case, relation, reason: (
            bool(case.param("refine"))
            and case.param("input_rank") is not None
            and bool(np.isnan(case.Y).any())
        ),
        Shown(
            "HOLRR(alpha=0.5, rank=2, refine=True",
            ("low_input_rank", "never_observed_slices", "rolling_window"),
            1014665122,
            "source_is_memory",
        ),
    ),
    Known(
        "directions of a stack that are rounding errors count in its rank, and in its freedom",
        lambda case, relation, reason: (
            case.stacks
            and (
                "rank_ is" in reason
                or (case.kernel and about(reason, *UNCERTAIN) and size_of(reason) < 0.05)
            )
        ),
        Shown("KernelHOLRRCV(", (), 267434265, "permuted_inputs"),
    ),
    Known(
        "landmarks with named blocks cannot be saved",
        lambda case, relation, reason: (
            relation == "saved_is_loaded" and "cannot be saved" in reason
        ),
        Shown(
            "KernelLRR(",
            ("named_blocks_of_inputs", "landmarks", "as_xarray"),
            789311686,
            "saved_is_loaded",
        ),
    ),
    Known(
        "landmarks in a table with several levels of columns lose the levels in a copy",
        lambda case, relation, reason: (
            relation in ("fitted_again", "saved_is_loaded")
            and "landmarks has other features than X" in reason
        ),
        Shown(
            "KernelRLSCV(", ("tensor_inputs", "landmarks", "as_pandas"), 1786057772, "fitted_again"
        ),
    ),
    Known(
        "an output of weight zero counts where a stack compares low rank with full rank",
        lambda case, relation, reason: case.stacks and without_weight(case),
        Shown(
            "HOLRRCV(alphas=[0.1, 1.0, 10.0], cv=3, loss='huber')",
            ("limited_ranks", "constant_input", "weights_of_outputs"),
            1227219671,
            "never_observed_left_out",
        ),
    ),
    Known(
        "deviations lose digits of small training residuals",
        lambda case, relation, reason: (
            wide(case)
            and about(reason, *UNCERTAIN)
            and (case.dtype == np.float32 or (case.kernel and size_of(reason) < 1e-3))
        ),
        Shown(
            "HOLRRCV(alphas=[0.1, 1.0, 10.0], cv=3, loss='huber')",
            ("fewer_samples_than_inputs", "real_weights", "single_precision"),
            558351923,
            "permuted_rows",
        ),
    ),
]

# Cases of defects that were mended.
MENDED: list[Shown] = [
    Shown(
        "RLS()",
        ("as_many_samples_as_inputs", "as_polars", "standardized"),
        2,
        "labelled_is_plain",
    ),
    Shown("RLS()", ("as_polars", "single_precision"), 2, "single_precision_stays"),
    Shown("RLSCV(", ("one_output_mode", "never_observed_slices"), 0, "fit"),
    Shown("HOLRRCV(", ("low_input_rank", "own_inputs"), 1, "input_ranks_are_kept"),
    Shown("RLSCV(", ("own_inputs",), 1, "null_error_is_brute_force"),
    Shown("KernelRLSCV(", ("one_output_mode",), 1, "constant_output_added"),
    Shown(
        "RLS()",
        ("low_input_rank", "fewer_samples_than_inputs", "rows_without_weight"),
        1,
        "rows_of_weight_zero_left_out",
    ),
    Shown("RLS()", ("own_inputs", "constant_input", "real_weights"), 1, "permuted_rows"),
    Shown("RLS()", ("scalar_outputs", "batches"), 0, "saved_is_loaded"),
    Shown("RLSCV(", ("penalties_of_blocks", "constant_input", "outputs_without_signal"), 2, "fit"),
    Shown("RLS()", ("fewer_samples_than_inputs", "robust_loss"), 2, "permuted_rows"),
    Shown("KernelRLS(", ("landmarks", "as_polars"), 2, "saved_is_loaded"),
    Shown(
        "LRR(",
        ("block_without_penalty", "constant_input", "constant_output"),
        1047,
        "permuted_inputs",
    ),
    Shown(
        "HOLRRCV(alphas=[0.1, 1.0, 10.0], cv=3, selection",
        ("constant_output", "as_flat"),
        1734,
        "permuted_rows",
    ),
    Shown(
        "RLS(alpha=0, fit_intercept=False)",
        (
            "tensor_inputs",
            "few_samples",
            "constant_input",
            "never_observed_slices",
            "missing_outputs",
            "integer_weights",
        ),
        2146,
        "permuted_rows",
    ),
    Shown(
        "HOLRRCV(alphas=[0.1, 1.0, 10.0], cv=3)",
        ("one_output_mode", "integer_weights", "moments_of_folds"),
        343,
        "rows_of_weight_zero_left_out",
    ),
    Shown(
        "HOLRRCV(alphas=[0.1, 1.0, 10.0], cv=3, selection",
        ("no_intercept", "constant_input", "extreme_units", "standardized"),
        1964062609,
        "permuted_rows",
    ),
    Shown(
        "RLS(alpha=0, fit_intercept=False)",
        ("as_many_samples_as_inputs", "no_intercept", "real_weights"),
        8,
        "permuted_inputs",
    ),
    Shown(
        "HOLRR(alpha=0.5, loss='huber'",
        ("no_penalty", "constant_input", "integer_weights", "single_precision"),
        482,
        "rotated_inputs",
    ),
    Shown(
        "RLSCV(",
        ("constant_input", "weights_of_outputs", "integer_weights", "single_precision"),
        1311352139,
        "values_in_rows_of_weight_zero",
    ),
    Shown(
        "HOLRR(alpha=0.5, rank=2)",
        ("low_input_rank", "block_without_penalty"),
        840367480,
        "permuted_inputs",
    ),
    Shown(
        "RLSCV(",
        ("own_inputs", "searched_penalty_of_each_output"),
        0,
        "held_out_errors_of_outputs_are_brute_force",
    ),
    Shown(
        "KernelRLSCV(",
        ("sizes_of_another_algorithm", "constant_output", "real_weights", "as_xarray"),
        1490061770,
        "constant_output_added",
    ),
    Shown(
        "HOLRRCV(alphas=[0.1, 1.0, 10.0], cv=3, loss='huber')",
        ("outputs_without_signal", "never_observed_cells", "missing_outputs"),
        1120884037,
        "permuted_inputs",
    ),
    Shown(
        "HOLRRCV(alphas=[0.1, 1.0, 10.0], cv=3, loss='huber')",
        ("one_input", "constant_input", "real_weights"),
        1544732938,
        "permuted_rows",
    ),
    Shown(
        "HOLRR(alpha=0.5, rank=2, refine=True",
        ("few_samples", "weights_of_outputs", "robust_loss"),
        908972255,
        "permuted_rows",
    ),
    Shown(
        "HOLRR(alpha=0.5, loss='huber'",
        ("few_samples", "real_weights", "as_xarray"),
        168941012,
        "permuted_rows",
    ),
    Shown(
        "RLS()",
        ("block_without_penalty", "weights_of_inputs"),
        0,
        "values_of_inputs_of_weight_zero",
    ),
    Shown("KernelRLSCV(", ("one_input", "other_kernels"), 1, "permuted_rows"),
    Shown(
        "KernelRLSCV(",
        ("tensor_inputs", "fewer_samples_than_inputs", "weights_of_inputs"),
        1466685114,
        "permuted_rows",
    ),
    Shown(
        "RLS()",
        ("low_input_rank", "own_inputs", "never_observed_cells"),
        182336043,
        "never_observed_left_out",
    ),
]


def explanation(case: Case, relation: str, reason: str) -> str | None:
    """The words of the defect that explains a failure; None where it is new."""
    for one in KNOWN:
        if one.explains(case, relation, reason):
            return one.words
    return None
