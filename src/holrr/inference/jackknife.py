"""Standard errors by the delete-a-group jackknife."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..core.mixture import Mixture
from ..core.namespace import Array, to_numpy
from ..core.warn import warn
from ..data.arrays import check_inputs, ignores_missing, is_dask
from ..data.inputs import n_columns
from ..data.output_scale import divide_outputs, divided
from ..data.unlabel import refit_dimension
from ..data.validation import Names, validate, validate_inputs
from ..kernel.estimators import KernelRegressor
from ..linear.robust import refuse_huber
from ..model_selection.folds import check_fold_moments
from ..model_selection.linear import Search
from ..pipelines import final_estimator
from ..streaming.moments import Moments
from .estimates import Jackknife, StandardErrors, aligned
from .groups import Groups, group_data

__all__ = ["standard_errors"]

# Attributes of searches with the chosen penalty.


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
    """Compute standard errors of coefficients, intercept, factors and predictions.

    The samples are divided into groups, and the model is fitted without each group in turn. The
    spread of these fits estimates the standard errors of the fit to all data (delete-a-group
    jackknife). Linear models are fitted to the moments of the groups, which are computed in one
    pass over the data and merged, so that the cost of a fit without a group does not depend on the
    number of samples.

    Parameters
    ----------
    model : estimator, Pipeline or GridSearchCV
        A fitted or unfitted estimator. It is not changed. Fits without a group use the same
        penalty. A cross-validated estimator must be fitted; the standard errors are those of its
        final model, with the chosen penalty, ranks and weights of a stack. A fitted pipeline
        transforms `X` and `predict_at`; its transformers are the same in all fits.
    X : array of shape (n_samples, n_features), or list of Moments
        The inputs of the fit, in memory, on disk or on a cluster; or, without `y`, the moments of
        at least two groups of samples.
    y : array of shape (n_samples, d1, ..., dp), optional
        The outputs of the fit.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples.
    n_groups : int, default=20
        Number of groups, at most the number of samples or of different `groups`. Standard errors
        from K groups have a relative error of about ``1 / sqrt(2 (K - 1))``. Groups are blocks of
        consecutive samples, since neighbours in time depend on each other.
    groups : array of shape (n_samples,), optional
        Labels of samples that depend on each other, such as those of one station, patient or
        year. Samples of one label are left out together; several labels are left out together if
        there are more than `n_groups`.
    predict_at : array of shape (n, n_features), optional
        Inputs for which to compute standard errors of predictions. These are errors of the mean;
        they do not include the noise of a new observation.
    stability : bool, default=True
        Whether to repeat a search without each group, to see how stable its choice is. This takes
        as long as `n_groups` searches.

    Returns
    -------
    StandardErrors
        Estimates with their standard errors.

    Notes
    -----
    Groups of different sizes are treated as in Busing et al. Tests and intervals use the t
    distribution with ``n_groups - 1`` degrees of freedom (Kott).

    Factors are determined up to a rotation. The factors of each fit without a group are therefore
    rotated to be as near as possible to those of all data (orthogonal Procrustes). Their standard
    errors describe the uncertainty of the subspace, not of single axes in it. The factors of a
    stack are truncated to its best single rank.

    Standard errors do not include the bias of a penalty or of a low rank.

    For `stability`, the groups are assigned, in their order, to as many folds as the `cv` of the
    search specifies. A search with a splitter is repeated with this splitter if the samples are in
    memory. Models with missing outputs, with `output_weight`, with fewer samples than features, and
    exact kernels are fitted to samples, not to moments. The landmarks are the same in all fits.
    The weights that ``loss="huber"`` finds for all samples are the same in all fits.

    References
    ----------
    F. M. T. A. Busing, E. Meijer, R. van der Leeden (1999). Delete-m jackknife for unequal m.
    Statistics and Computing 9, 3-8.

    P. S. Kott (2001). The delete-a-group jackknife. Journal of Official Statistics 17(4), 521-526.

    Examples
    --------
    >>> from holrr import HOLRR, standard_errors
    >>> from holrr.datasets import make_tensor_regression
    >>> X, Y = make_tensor_regression(200, 6, (5, 4), rank=(2, 2, 2), snr=1.0, random_state=0)
    >>> errors = standard_errors(HOLRR(rank=(2, 2, 2)), X, Y, predict_at=X[:3])
    >>> errors.coef.std_error.shape, errors.predictions.std_error.shape
    ((6, 5, 4), (3, 5, 4))
    """
    model, X, predict_at = final_estimator(model, X, predict_at)
    if not isinstance(n_groups, Integral) or n_groups < 2:
        raise ValueError(f"n_groups must be an integer of at least 2; got n_groups={n_groups!r}.")
    model._validate_params()
    final, mixture, pilot = _final(model)
    is_kernel = isinstance(final, KernelRegressor)
    if isinstance(X, Sequence) and all(isinstance(m, Moments) for m in X):
        if not (y is None and sample_weight is None and groups is None):
            raise ValueError("y, sample_weight and groups must be None if X is a list of Moments.")
        if is_kernel:
            raise TypeError(f"{type(model).__name__} cannot be fitted to moments; pass X and y.")
        refuse_huber(getattr(final, "loss", "squared"), "moments")
        grams = getattr(final, "subspaces", "fitted") == "response"
        parts = check_fold_moments(X, grams)
        _, scale = divide_outputs(final, parts[0].merge(*parts[1:]), X[0].labels)
        parts = parts if scale is None else [divided(part, scale) for part in parts]
        n_features = n_columns(X[0].labels) or X[0].n_features
        names = Names(n_features, X[0].feature_names, X[0].labels)
        if names.labels is None and "labels_" in vars(final):
            names = replace(names, labels=final.labels_)
        if names.features is None and "feature_names_in_" in vars(final):
            names = replace(names, features=final.feature_names_in_)
        grouped = Groups(parts=parts, names=names, scale=scale)
    else:
        in_chunks = not is_kernel or final._uses_landmarks
        fresh = clone(final)
        dim = refit_dimension(final, X, y)
        data, names = validate(
            fresh, X, y, sample_weight, groups=groups, sample_dim=dim, in_chunks=in_chunks
        )
        grouped = group_data(final, data, names, int(n_groups), groups)
    named = clone(final)
    vars(named).update(names.attributes())
    at = None if predict_at is None else validate_inputs(named, predict_at)
    at = check_inputs(at.compute()) if is_dask(at) else at
    rank = () if mixture is None else _as_tuple(model.best_params_["rank"])
    found = _gather(grouped, final, mixture, pilot, at, rank)
    if isinstance(model, Search):
        found = replace(found, **_choices(model, grouped if stability else None))
    _warn_of_other_data(model, found)
    vars(found.model).update(names.attributes())
    return found


def _final(model: Any) -> tuple[Any, Mixture | None, Any]:
    """Return the model to fit again; for a stack also the mixture and its pilot."""
    if not isinstance(model, Search):
        return model, None, None
    check_is_fitted(model)
    final = model.best_estimator_
    if not hasattr(model, "stack_ranks_"):
        return final, None, None
    best = model.best_params_
    single = clone(final).set_params(rank=best["rank"])._structure()
    parts = list(zip(model.stack_alphas_, model.stack_ranks_, model.stack_weights_, strict=True))
    of_outputs = [(alpha, w) for alpha, rank, w in parts if np.ndim(alpha)]
    mixture = Mixture(
        single,
        model.alpha_,
        ranks=tuple((rank, w) for _, rank, w in parts if rank is not None),
        ridge=sum(w for alpha, rank, w in parts if rank is None and not np.ndim(alpha)),
        averaged=tuple(of_outputs[0][0].tolist()) if of_outputs else (),
        by_output=of_outputs[0][1] if of_outputs else 0.0,
    )
    # Missing outputs are imputed by the best single model.
    pilot = (single, best["alpha"]) if ignores_missing(final) else None
    return final, mixture, pilot


def _as_tuple(rank: Any) -> tuple[int, ...]:
    return rank if isinstance(rank, tuple) else (rank,)


def _choices(model: Any, grouped: Groups | None) -> dict[str, Any]:
    """Return the choice of a search, and its choices without each group."""
    found = {"rank": _best_rank(model), "penalty": model.alpha_, "ranks": None}
    if grouped is not None:
        again = [(_best_rank(search), search.alpha_) for search in grouped.searches(model)]
        found["ranks"] = [rank for rank, _ in again]
        found["penalties"] = np.array([penalty for _, penalty in again])
    return found


def _best_rank(search: Any) -> tuple[int, ...]:
    """Return the rank of the best single model, also for a stack."""
    best = getattr(search, "best_params_", {})
    return _as_tuple(best["rank"]) if "rank" in best else _rank(search)


def _gather(
    grouped: Groups,
    model: Any,
    mixture: Mixture | None,
    pilot: Any,
    at: Array | None,
    rank: tuple[int, ...],
) -> StandardErrors:
    """Compute standard errors of all quantities, with one fit in memory at a time."""
    fits, ratios, ranks = grouped.fits(model, mixture, pilot), grouped.weights, []
    ratios, full = ratios.sum() / ratios, next(fits)
    sums = {name: Jackknife(value) for name, value in _quantities(full, at, rank).items()}
    for fit, h in zip(fits, ratios, strict=True):
        ranks.append(_rank(fit))
        values = _quantities(fit, at, rank, dense=True)
        for name, jackknife in sums.items():
            turn = isinstance(name, int)
            jackknife.add(aligned(values[name], jackknife.value) if turn else values[name], h)
    found = {name: jackknife.estimate() for name, jackknife in sums.items()}
    return StandardErrors(
        model=full,
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
    """Return the arrays that get standard errors; the keys of factors are their modes.

    Modes that are not reduced have no factor, unless `dense`. The rows of the first factor of a
    kernel are samples, not inputs. Only the leading directions of a stack are used.
    """
    found: dict[str | int, Array] = {"intercept": fit._intercept}
    is_kernel = hasattr(type(fit), "dual_coef_")
    if not is_kernel or hasattr(fit, "coef_"):
        found["coef"] = fit._dense_coef()
    if at is not None:
        found["predictions"] = fit._predict_array(at)
    for mode, U in enumerate(fit.tucker_.dense_factors()):
        U = U[:, : rank[mode]] if mode < len(rank) else U
        if (dense or U.shape[1] < U.shape[0]) and not (is_kernel and mode == 0):
            found[mode] = U
    return found


def _rank(fit: Any) -> tuple[int, ...]:
    return _as_tuple(getattr(fit, "rank_", ()))


def _warn_of_other_data(model: Any, found: StandardErrors) -> None:
    """Warn if the fitted model differs from the fit that has the standard errors."""
    if not hasattr(model, "tucker_") or found.coef is None:
        return
    coef, value = to_numpy(model._dense_coef()), found.coef.value
    if coef.shape == value.shape:
        norm = lambda A: float(np.linalg.norm(np.nan_to_num(A)))  # noqa: E731
        off = norm(coef - value)
        if off <= 0.1 * norm(found.coef.std_error) or off <= 1e-6 * norm(value):
            return
    warn(
        "the coefficients of the model differ from those of a fit to these data by more than a "
        "tenth of their standard errors. The standard errors are those of the fit to these data. "
        "Pass the data of the fit; for a stack pass the search itself, not its best_estimator_."
    )
