"""Standard errors by the delete-a-group jackknife."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..base import TensorRegressor
from ..core.caution import warn
from ..core.namespace import Array, to_numpy
from ..data.arrays import check_inputs
from ..data.labels import check_features
from ..data.moments import Moments
from ..data.samples import ingest
from ..linear.base import LinearTensorRegressor
from ..model_selection.linear_folds import check_fold_moments
from ..model_selection.search import SearchCV
from ..model_selection.stack import mask_of
from ._estimates import Jackknife, StandardErrors, aligned
from ._refits import Groups, MomentGroups, group_data

__all__ = ["standard_errors"]


def standard_errors(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    n_groups: int = 20,
    groups: Any = None,
    predict_at: Any = None,
    stability: bool = True,
) -> StandardErrors:
    """Standard errors of coefficients, intercept, factors and predictions.

    The samples are put into groups, and the model is fitted without each of them in turn. The
    spread of these fits, times what one group fewer understates it by, is the variance of the fit
    to all the data (delete-a-group jackknife). Linear models are fitted to the moments of the
    groups, gathered in one pass over the data, merged and never subtracted: a fit without a group
    costs as much as a fit to moments, however many samples there are.

    Parameters
    ----------
    model : estimator
        Fitted or not; its parameters count, and it is left as it is. Its penalty stays as it is
        while the samples become fewer by a group. A cross-validated estimator must be fitted; the
        errors are those of its final model, with penalty, ranks and the weights of a stack as
        they were chosen.
    X : array of shape (n_samples, n_features), or list of Moments
        The data of the fit, in memory, on disk or on a cluster; or, with `y` left out, the moments
        of at least two groups of samples, gathered anywhere.
    y : array of shape (n_samples, d1, ..., dp), optional
    sample_weight : array of shape (n_samples,), optional
    n_groups : int, default=20
        Number of groups, two at least; there are never more than samples or than different
        `groups`. The standard errors have themselves a relative error of about
        ``1 / sqrt(2 (n_groups - 1))``. Groups are blocks of consecutive samples, since neighbours
        in time depend on each other.
    groups : array of shape (n_samples,), optional
        Which samples depend on each other (one station, one patient, one year): these are left out
        together, several groups at a time where there are more than `n_groups`.
    predict_at : array of shape (n, n_features), optional
        Inputs for which the predictions get standard errors, too. These are errors of the mean; a
        new observation has noise on top.
    stability : bool, default=True
        Whether a search is run again without each group, to see how stable its choice is. That
        takes as long as `n_groups` searches.

    Returns
    -------
    StandardErrors

    Notes
    -----
    Groups of different sizes follow Busing, Meijer and van der Leeden. The number of degrees of
    freedom is one less than the number of groups.

    Factors are known up to a rotation, so those of each leave-out are turned to come as near as
    they can to those of all the data (orthogonal Procrustes); what is left is how sure the
    subspace is, not the axes in it. Those of a stack are cut to its best single rank.

    Standard errors say nothing of the bias that a penalty or a low rank brings. A choice by
    cross-validation jumps, which the jackknife magnifies; with the choice kept, the errors were
    within about a fifth of the true ones, the choice included (see docs/standard_errors.md).

    For `stability` the groups are dealt, in their order, to as many folds as the `cv` of the search
    says. One whose `cv` is a splitter is run again as it is, on the samples, as far as they are in
    memory. Models with missing outputs, with `output_weight`, with fewer samples than features,
    and exact kernels are fitted again to samples, not to moments. Landmarks stay where they are.

    References
    ----------
    F. M. T. A. Busing, E. Meijer, R. van der Leeden (1999). Delete-m jackknife for unequal m.
    Statistics and Computing 9, 3-8.

    P. S. Kott (2001). The delete-a-group jackknife. Journal of Official Statistics 17(4), 521-526.

    Y. Benjamini, Y. Hochberg (1995). Controlling the false discovery rate: a practical and powerful
    approach to multiple testing. Journal of the Royal Statistical Society B 57(1), 289-300.

    Examples
    --------
    >>> from holrr import HOLRR, standard_errors
    >>> from holrr.datasets import make_tensor_regression
    >>> X, Y = make_tensor_regression(200, 6, (5, 4), rank=(2, 2, 2), snr=1.0, random_state=0)
    >>> model = HOLRR(rank=(2, 2, 2)).fit(X, Y)
    >>> errors = standard_errors(model, X, Y, predict_at=X[:3])
    >>> errors.coef.std_error.shape, errors.predictions.std_error.shape
    ((6, 5, 4), (3, 5, 4))
    >>> bool(errors.coef.significant(q=0.05).any())
    True
    """
    if not isinstance(model, (TensorRegressor, SearchCV)):
        raise TypeError(f"model must be an estimator of holrr; got {type(model).__name__}.")
    if not isinstance(n_groups, Integral) or n_groups < 2:
        raise ValueError(f"n_groups must be an integer, at least 2; got n_groups={n_groups!r}.")
    model._validate_params()
    final, options = _final(model)
    door = clone(final)
    grouped: Groups
    if _is_moments(X):
        if not (y is None and sample_weight is None and groups is None):
            raise ValueError("y, sample_weight and groups must be left out where X is moments.")
        if not isinstance(final, LinearTensorRegressor):
            raise TypeError(f"{type(model).__name__} has no fit to moments; pass X and y.")
        grouped = MomentGroups(check_fold_moments(X, final._wants_response_grams()))
        door.n_features_in_ = grouped.parts[0].n_features
    else:
        stream = getattr(final, "_uses_landmarks", True)
        data = ingest(door, X, y, sample_weight, stream=stream)
        grouped = group_data(final, data, int(n_groups), groups)
    at = None
    if predict_at is not None:
        check_features(door, predict_at, reset=False)
        at = check_inputs(predict_at)
    found = _gather(grouped, final, options, at, _rank(model) if options else ())
    if isinstance(model, SearchCV):
        found = replace(found, **_choices(model, grouped if stability else None))
    _warn_of_other_data(model, found)
    return found


def _final(model: Any) -> tuple[Any, dict[str, Any]]:
    """The model that is fitted again, and how: that of a search with its ranks as they are."""
    if not isinstance(model, SearchCV):
        return model, {}
    check_is_fitted(model)
    final = model.best_estimator_
    if not hasattr(model, "stack_ranks_"):
        return final, {}
    order = model.cv_results_["n_parameters"].ndim
    options = {"mask": mask_of(model.stack_ranks_, model.stack_weights_, order)}
    if getattr(final, "missing", "raise") == "fill":  # the best single rank fills the holes
        options["pilot"] = clone(final).set_params(rank=model.rank_)
    return final, options


def _choices(model: SearchCV, grouped: Groups | None) -> dict[str, Any]:
    """What a search has chosen, and what it chooses without each group."""
    rank, penalty = _rank(model), _penalty(model)
    if grouped is None:
        return {"rank": rank, "penalty": penalty, "ranks": None}
    found = [(_rank(search), _penalty(search)) for search in grouped.searches(model)]
    ranks, penalties = (list(values) for values in zip(*found, strict=True))
    return {"rank": rank, "penalty": penalty, "ranks": ranks, "penalties": np.array(penalties)}


def _is_moments(X: Any) -> bool:
    return isinstance(X, Sequence) and len(X) > 0 and all(isinstance(m, Moments) for m in X)


def _gather(
    grouped: Groups, model: Any, options: dict[str, Any], at: Array | None, rank: tuple[int, ...]
) -> StandardErrors:
    """Standard errors of all quantities, one leave-out in memory at a time."""
    full = grouped.fit(model, **options)
    sums = {name: Jackknife(value) for name, value in _quantities(full, at, rank).items()}
    ranks, total = [], float(grouped.weights.sum())
    for fit, weight in zip(grouped.leave_outs(model, **options), grouped.weights, strict=True):
        ranks.append(_rank(fit))
        values = _quantities(fit, at, rank, dense=True)
        for name, jackknife in sums.items():
            value = values[name]
            if isinstance(name, int):
                value = aligned(value, jackknife.value)
            jackknife.add(value, total / weight)
    found = {name: jackknife.estimate() for name, jackknife in sums.items()}
    return StandardErrors(
        coef=found.get("coef"),
        intercept=found["intercept"],
        factors=tuple(found.get(mode) for mode in range(len(full.tucker_.factors))),
        predictions=found.get("predictions"),
        rank=_rank(full),
        ranks=ranks,
        weights=grouped.weights,
    )


def _quantities(
    fit: Any, at: Array | None, rank: tuple[int, ...], dense: bool = False
) -> dict[str | int, Array]:
    """What gets standard errors, factors under the numbers of their modes.

    Modes that are not reduced have no factor to be unsure of, unless `dense`. The rows of the first
    factor of a kernel are samples, not inputs. Of a stack's directions the leading ones count.
    """
    found: dict[str | int, Array] = {"intercept": fit.intercept_}
    is_kernel = hasattr(type(fit), "dual_coef_")
    if not is_kernel or hasattr(fit, "coef_"):
        found["coef"] = fit.coef_
    if at is not None:
        found["predictions"] = fit._predict_checked(at)
    factors = fit.tucker_.dense_factors() if dense else fit.tucker_.factors
    for mode, U in enumerate(factors):
        if U is not None and not (is_kernel and mode == 0):
            U = U[:, : rank[mode]] if mode < len(rank) else U
            if dense or U.shape[1] < U.shape[0]:
                found[mode] = U
    return found


def _rank(fit: Any) -> tuple[int, ...]:
    rank = getattr(fit, "rank_", ())
    return rank if isinstance(rank, tuple) else (rank,)


def _penalty(search: Any) -> float:
    names = {"alphas": "alpha_", "penalties": "penalty_", "betas": "beta_"}
    return float(getattr(search, names[search._penalties]))


def _warn_of_other_data(model: Any, found: StandardErrors) -> None:
    """A fitted model should be the one that the errors are of."""
    if not hasattr(model, "tucker_") or found.coef is None:
        return
    coef, (value, std_error) = to_numpy(model.coef_), (found.coef.value, found.coef.std_error)
    same = coef.shape == value.shape
    if same:
        known = ~np.isnan(coef) & ~np.isnan(std_error)
        off = np.linalg.norm((coef - value)[known])
        scale = np.linalg.norm(value[known])
        same = off <= 0.1 * np.linalg.norm(std_error[known]) or off <= 1e-6 * scale
    if not same:
        warn(
            "the coefficients of the model differ from those of a fit to these data by more than "
            "a tenth of their standard errors, which are those of the latter. Pass the data of the "
            "fit; and of a stack of ranks the search itself, not its best_estimator_."
        )
