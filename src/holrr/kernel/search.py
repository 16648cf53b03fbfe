"""Searches over kernels, penalties and ranks: KernelRLSCV, KernelLRRCV and KernelHOLRRCV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ..core.approximate import FullRank, MatrixRank, MultilinearRank, Structure
from ..core.checks import check_finite
from ..core.namespace import Array
from ..data.validation import Samples, validate
from ..linear.estimators import MULTILINEAR_CONSTRAINTS
from ..model_selection.criteria import criterion_results
from ..model_selection.folds import split
from ..model_selection.grid import RankGrid, check_penalties, matrix_grid, multilinear_grid
from ..model_selection.linear import (
    SEARCH_CONSTRAINTS,
    Search,
    check_search,
    chosen_rank,
    in_user_units,
    refuse_held_out,
    resolve_ranks,
    resolve_selection,
    search_attributes,
    shared_parameters,
    warn_of_caps,
)
from ..model_selection.pruning import pruned_surface
from ..model_selection.search import Choice, SearchOptions, run_search
from .candidates import KernelSpec, check_kernels, some_samples
from .estimators import KERNEL_CONSTRAINTS, KernelHOLRR, KernelLRR, KernelRLS
from .fit import KernelOptions
from .folds import kernel_folds, landmark_folds
from .landmarks import choose_landmarks

__all__ = ["KernelHOLRRCV", "KernelLRRCV", "KernelRLSCV"]


class KernelSearch(Search):
    """Searches over kernels, penalties and ranks.

    A subclass names its parameters, the grid of ranks and the structure of a rank.
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        **{name: found for name, found in KERNEL_CONSTRAINTS.items() if name != "gamma"},
        **SEARCH_CONSTRAINTS,
        "gammas": "no_validation",
        "kernels": "no_validation",
    }

    _estimator: type
    subspaces: str = "fitted"
    refine: bool = False
    search: str = "exhaustive"

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        """The ranks to try of coefficients of this shape."""
        raise NotImplementedError

    def _structure(self, rank: tuple[int, ...]) -> Structure:
        """The structure of a rank."""
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Any:
        """Choose by cross-validation, and fit the chosen model to all the data.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            As in the estimator that is chosen.
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of any order p >= 0.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples, in the fits and in the held-out errors.
        groups : array of shape (n_samples,), optional
            Groups of the samples, for splitters that use them.

        Returns
        -------
        self
        """
        data, names = validate(
            self, X, y, sample_weight, groups=groups, stream=self._uses_landmarks
        )
        options = self._options()
        check_search(options, data.n_samples)
        self._grid((data.n_samples, *data.output_shape))  # raises for bad ranks
        if isinstance(data, Samples):
            data = data.scaled(inputs=False)
            check_finite(data.Y, "y")
        else:
            refuse_held_out(self, "data that are read in blocks")
        splits = split(data, self.cv, groups) if self.criterion == "cv" else []
        specs, points = self._candidates(data), None
        details = {
            "fit_intercept": self.fit_intercept,
            "center_kernel": self.center_kernel,
            "response_grams": self.subspaces == "response",
        }
        if self._uses_landmarks:
            kernel, given = specs[0]["kernel"], self.landmarks
            points = choose_landmarks(
                data, names, kernel, self.n_components, given, self.random_state
            )
            folds = landmark_folds(data, splits, specs, points, **details)
        else:
            assert isinstance(data, Samples)
            folds = kernel_folds(data, splits, specs, **details)
        found = run_search(folds, options, self._fit_options)
        chosen = specs[found.choice.candidate]
        model = self._model(found.choice.alpha, chosen_rank(found), chosen, points)
        if isinstance(data, Samples) and points is None:
            model._assign_fit(found.fit, names, inputs=data.X)
        else:
            model._assign_fit(found.fit, names, features=model._draw_features(data, names))
        found.results["kernels"] = specs
        attributes = search_attributes(found, model, folds.y_unit)
        attributes["best_params_"] |= specs[found.choice.index[0]]
        attributes["n_iter_"] = vars(model).get("n_iter_")
        self._assign(found.fit, names, kernels_=specs, landmarks_=points, **attributes)
        self.kernel_params_, self.gamma_ = dict(chosen), chosen.get("gamma")
        if found.held_out is not None:
            assert isinstance(data, Samples)
            units = in_user_units(found.held_out, data, None, slice(None), data.n_samples)
            found = replace(found, held_out=units)
        return self._keep_held_out(found, X, y)

    # ------------------------------------------------------------ steps

    def _options(self) -> SearchOptions:
        warn_of_caps(self)
        return SearchOptions(
            name=type(self).__name__,
            grid=self._grid,
            structure=self._structure,
            alphas=check_penalties(self.alphas, "alphas"),
            criterion=self.criterion,
            criteria=criterion_results,
            selection=resolve_selection(self),
            subspaces=self.subspaces,
            max_bytes=self.max_bytes,
            prune=pruned_surface if self.search == "pruned" else None,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            fit_intercept=self.fit_intercept,
            keep_held_out=self.keep_held_out,
            named_candidates=True,
        )

    def _candidates(self, data: Any) -> list[KernelSpec]:
        """The kernels to try."""
        names = ("kernel", "degree", "coef0", "kernel_params")
        default: KernelSpec = {name: getattr(self, name) for name in names}
        return check_kernels(self.kernels, default, self.gammas, *some_samples(data)[:2])

    def _fit_options(self, choice: Choice) -> KernelOptions:
        """The options of the fit of a choice to all the data."""
        return KernelOptions(
            structure=choice.structure,
            alpha=choice.alpha,
            fit_intercept=self.fit_intercept,
            center_kernel=self.center_kernel,
            solver=self.solver,
        )

    def _model(self, alpha: float, rank: Any, chosen: KernelSpec, points: Array | None) -> Any:
        """The unfitted estimator that was chosen."""
        shared = shared_parameters(self, self._estimator)
        for name in ("n_components", "random_state"):
            shared.pop(name)
        if points is not None:
            shared["landmarks"] = points
        if rank is not None:
            shared["rank"] = rank
        return self._estimator(alpha=alpha, **{**shared, **chosen})

    @property
    def _uses_landmarks(self) -> bool:
        return self.n_components is not None or self.landmarks is not None

    # ------------------------------------------------------------ predictions

    def _feature_blocks(self, X: Array) -> Iterable[tuple[Array, Array]]:
        return self.best_estimator_._feature_blocks(X)

    def _std_factor(self, X: Array, F: Array) -> Array:
        return self.best_estimator_._std_factor(X, F)

    def _dense_coef(self) -> Array:
        return self.best_estimator_._dense_coef()

    @property
    def dual_coef_(self) -> Array:
        """Dense dual coefficients, computed on access."""
        check_is_fitted(self)
        return self.best_estimator_.dual_coef_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed" and self.kernels is None
        return tags


class KernelRLSCV(KernelSearch):
    """Kernel ridge regression for tensor outputs; kernel and penalty cross-validated.

    One eigendecomposition for each fold and kernel serves all penalties.

    Parameters
    ----------
    alphas, cv, kernel, gammas, degree, coef0, kernel_params, kernels
        What is tried, and on which folds, as in `KernelHOLRRCV`.
    selection : {"min", "1se"} or callable, default="min"
        As in `HOLRRCV`; the simplest of equals is that with the largest penalty.
    criterion, max_bytes, keep_held_out, n_jobs, verbose
        As in `HOLRRCV`.
    fit_intercept, center_kernel, solver, n_components, landmarks, random_state
        As in `KernelHOLRRCV`.
    missing_features, input_shape, output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    best_estimator_ : KernelRLS
        The chosen model, fitted to all the data.
    cv_results_ : dict
        As in `KernelHOLRRCV`; the surfaces have the shape (n_kernels, n_alphas).
    kernel_params_, gamma_, alpha_, kernels_, alphas_, landmarks_, noise_
        What was chosen, what was tried, and the noise of each output, as in `KernelHOLRRCV`.
    best_score_, best_index_, best_params_, held_out_, held_out_mse_, null_mse_, ridge_mse_
        As in `KernelHOLRRCV`.
    dual_coef_, intercept_, tucker_, n_parameters_
        Those of the final model.
    n_features_in_, feature_names_in_, labels_
        As in `KernelRLS`.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.kernel import KernelRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(80, 1))
    >>> Y = np.sin(X * np.arange(1, 4))[:, :, None] + 0.1 * rng.normal(size=(80, 3, 2))
    >>> model = KernelRLSCV().fit(X, Y)
    >>> model.score(X, Y) > 0.97, model.kernel_params_["kernel"]
    (True, 'rbf')
    >>> low, high = model.predict_interval(X, coverage=0.9)
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        **KernelSearch._parameter_constraints,
        "selection": [StrOptions({"min", "1se"}), callable],
    }
    _estimator = KernelRLS

    def __init__(
        self,
        alphas=None,
        cv=5,
        *,
        kernel="rbf",
        gammas=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        kernels=None,
        criterion="cv",
        selection="min",
        fit_intercept=True,
        center_kernel=True,
        solver="auto",
        n_components=None,
        landmarks=None,
        random_state=None,
        max_bytes=2**30,
        keep_held_out=False,
        n_jobs=None,
        verbose=False,
        missing_features="raise",
        input_shape=None,
        output_shape=None,
        sample_dim=None,
    ):
        self.alphas = alphas
        self.cv = cv
        self.kernel = kernel
        self.gammas = gammas
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.kernels = kernels
        self.criterion = criterion
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.center_kernel = center_kernel
        self.solver = solver
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state
        self.max_bytes = max_bytes
        self.keep_held_out = keep_held_out
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.missing_features = missing_features
        self.input_shape = input_shape
        self.output_shape = output_shape
        self.sample_dim = sample_dim

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        return RankGrid(())

    def _structure(self, rank: tuple[int, ...]) -> FullRank:
        return FullRank()


class KernelLRRCV(KernelSearch):
    """Low-rank kernel regression; kernel, penalty and rank cross-validated.

    The held-out errors of all ranks and penalties come from one eigendecomposition for each fold
    and kernel, exactly.

    Parameters
    ----------
    ranks : list of int, optional
        The only ranks to try. By default all ranks.
    max_rank : int, optional
        Largest rank to try.
    alphas, cv, kernel, gammas, degree, coef0, kernel_params, kernels
        What is tried, and on which folds, as in `KernelHOLRRCV`.
    criterion, selection, max_bytes, search, keep_held_out, n_jobs, verbose
        As in `HOLRRCV`.
    fit_intercept, center_kernel, solver, n_components, landmarks, random_state
        As in `KernelHOLRRCV`.
    missing_features, input_shape, output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    rank_ : int
        The rank of the model that predicts.
    stack_ranks_, stack_alphas_, stack_weights_
        Of a stack, as in `HOLRRCV`.
    best_estimator_ : KernelLRR
        The model that predicts, fitted to all the data.
    cv_results_ : dict
        As in `KernelHOLRRCV`; the surfaces have the shape (n_kernels, n_alphas, R0).
    kernel_params_, gamma_, alpha_, kernels_, alphas_, landmarks_, noise_
        What was chosen, what was tried, and the noise of each output, as in `KernelHOLRRCV`.
    best_score_, best_index_, best_params_, held_out_, held_out_mse_, null_mse_, ridge_mse_
        As in `KernelHOLRRCV`.
    dual_coef_, intercept_, tucker_, n_parameters_, core_, factors_, spectra_
        Those of the final model.
    n_features_in_, feature_names_in_, labels_
        As in `KernelRLS`.

    References
    ----------
    A. Mukherjee, J. Zhu (2011). Reduced rank ridge regression and its kernel extensions.
    Statistical Analysis and Data Mining 4(6), 612-622.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.kernel import KernelLRRCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(80, 1))
    >>> Y = np.hstack([np.sin(2 * X), np.cos(X)]) @ rng.normal(size=(2, 20))
    >>> Y = (Y + 0.2 * rng.normal(size=(80, 20))).reshape(80, 4, 5)
    >>> model = KernelLRRCV(selection="1se").fit(X, Y)
    >>> model.rank_
    2
    >>> low, high = model.predict_interval(X, coverage=0.9)
    """

    _estimator = KernelLRR

    def __init__(
        self,
        alphas=None,
        ranks=None,
        cv=5,
        *,
        max_rank=None,
        kernel="rbf",
        gammas=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        kernels=None,
        criterion="cv",
        selection="auto",
        fit_intercept=True,
        center_kernel=True,
        solver="auto",
        n_components=None,
        landmarks=None,
        random_state=None,
        max_bytes=2**30,
        search="pruned",
        keep_held_out=False,
        n_jobs=None,
        verbose=False,
        missing_features="raise",
        input_shape=None,
        output_shape=None,
        sample_dim=None,
    ):
        self.alphas = alphas
        self.ranks = ranks
        self.cv = cv
        self.max_rank = max_rank
        self.kernel = kernel
        self.gammas = gammas
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.kernels = kernels
        self.criterion = criterion
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.center_kernel = center_kernel
        self.solver = solver
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state
        self.max_bytes = max_bytes
        self.search = search
        self.keep_held_out = keep_held_out
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.missing_features = missing_features
        self.input_shape = input_shape
        self.output_shape = output_shape
        self.sample_dim = sample_dim

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        return matrix_grid(*resolve_ranks(self), shape)

    def _structure(self, rank: tuple[int, ...]) -> MatrixRank:
        return MatrixRank(rank[0])


class KernelHOLRRCV(KernelSearch):
    """Higher-order low-rank kernel regression; kernel, penalty and all ranks cross-validated.

    The held-out error of *every* multilinear rank and penalty is computed exactly, from one
    eigendecomposition for each fold and kernel and without a refit for any of them.

    Parameters
    ----------
    alphas : array of shape (n_alphas,) or None, default=None
        Penalties to try, at least 0 and different from each other, in any order. None for half
        decades from 1e-5 to 1e2 times the mean eigenvalue of the Gram matrix (from the least to
        the largest one of the kernels).
    ranks : list of tuples, optional
        The only ranks to try, as in `HOLRRCV`.
    cv : int, splitter or iterable, default=5
        Folds, as in `HOLRRCV`.
    max_rank : int or tuple, optional
        Largest rank to try, as in `HOLRRCV`.
    kernel : str or callable, default="rbf"
        The kernel, as in `KernelRLS`.
    gammas : None, float or list of floats, default=None
        Values of the kernel's parameter gamma to try. None for six from the data where the kernel
        is "rbf" or "laplacian" (1/100 to 3 times one over the median of the squared, or absolute,
        distances between samples), and for the kernel's default otherwise.
    degree, coef0, kernel_params
        As in `KernelRLS`.
    kernels : list, default=None
        The candidates, in the place of `kernel`: names, callables and dicts, these with the key
        "kernel" and some of "gamma", "degree", "coef0" and "kernel_params". What a candidate leaves
        out is filled in from the parameters above; `gammas` are tried with each that has no own.
    subspaces : {"fitted", "response"}, default="fitted"
        Where the output subspaces come from, as in `KernelHOLRR`.
    refine : bool, default=False
        Whether the final fit is refined; the errors are those of the fits before refinement.
    max_iter, tol
        Rounds and tolerance of the refinement, as in `HOLRR`.
    criterion, selection, max_bytes, search, keep_held_out, n_jobs, verbose
        As in `HOLRRCV`.
    fit_intercept, center_kernel : bool, default=True
        As in `KernelRLS`.
    solver : {"auto", "cholesky", "eigh"}, default="auto"
        Of the final fit, as in `KernelRLS`; the folds use "eigh".
    n_components, landmarks, random_state
        As in `KernelRLS`. The landmarks are drawn once, from all samples, for all folds and
        kernels; drawing them looks at no outputs.
    missing_features, input_shape, output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    kernel_params_ : dict
        The chosen kernel and its parameters, with the keys of `kernels`.
    gamma_ : float or None
        Its parameter gamma; None for its default, or where it has none.
    rank_ : tuple of int
        The ranks of the model that predicts.
    held_out_mse_ : float
        Held-out error of the model that predicts.
    null_mse_, ridge_mse_ : float
        Held-out errors of the mean and of kernel ridge regression, for comparison.
    stack_ranks_, stack_alphas_, stack_weights_
        Of a stack, as in `HOLRRCV`. All models that are mixed have the same kernel.
    best_index_ : tuple of int
        Place of the best single model in the surface: kernel, penalty, ranks.
    best_score_ : float
        Its score: minus its mean held-out error, or minus its criterion.
    best_params_ : dict
        Its penalty, its rank, and the parameters of its kernel.
    alpha_ : float
        Its penalty.
    held_out_ : array with the shape of y
        As in `HOLRRCV`.
    best_estimator_ : KernelHOLRR
        The model that predicts, fitted to all the data.
    cv_results_ : dict
        As in `HOLRRCV`; the surfaces ``mean_mse``, ``std_mse`` and ``fold_mse`` have an axis for
        the kernels before that of the penalties, however many there are:
        (n_kernels, n_alphas, R0, ..., Rp). ``kernels`` is `kernels_`.
    kernels_ : list of dict
        The kernels that were tried.
    alphas_ : array of shape (n_alphas,)
        The penalties that were tried.
    landmarks_ : array of shape (n_components, n_features)
        With landmarks only.
    noise_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        As in `HOLRRCV`.
    dual_coef_, intercept_, tucker_, n_parameters_, core_, factors_, spectra_
        Those of the final model.
    n_features_in_, feature_names_in_, labels_
        As in `KernelRLS`.

    Notes
    -----
    Entry ``[k, a, i, j, ...]`` of the surface belongs to ``kernels_[k]``, ``alphas_[a]`` and the
    rank ``(i + 1, j + 1, ...)``. The input rank goes up to the number of outputs, above which it
    changes nothing, or to what the largest training fold supports.

    References
    ----------
    G. Rabusseau, H. Kadri (2016). Higher-order low-rank regression. arXiv:1602.06863.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.kernel import KernelHOLRRCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(100, 1))
    >>> latent = np.hstack([np.sin(2 * X), np.cos(X)])
    >>> U1, U2 = rng.normal(size=(5, 2)), rng.normal(size=(6, 2))
    >>> Y = np.einsum("na,abc,jb,kc->njk", latent, rng.normal(size=(2, 2, 2)), U1, U2)
    >>> Y += 0.3 * rng.normal(size=Y.shape)
    >>> model = KernelHOLRRCV(gammas=[0.1, 1.0], selection="1se").fit(X, Y)
    >>> model.rank_, model.kernel_params_
    ((2, 2, 2), {'kernel': 'rbf', 'gamma': 1.0})
    >>> low, high = model.predict_interval(X, coverage=0.9)
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        **KernelSearch._parameter_constraints,
        **MULTILINEAR_CONSTRAINTS,
    }
    _estimator = KernelHOLRR

    def __init__(
        self,
        alphas=None,
        ranks=None,
        cv=5,
        *,
        max_rank=None,
        kernel="rbf",
        gammas=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        kernels=None,
        subspaces="fitted",
        refine=False,
        max_iter=100,
        tol=1e-6,
        criterion="cv",
        selection="auto",
        fit_intercept=True,
        center_kernel=True,
        solver="auto",
        n_components=None,
        landmarks=None,
        random_state=None,
        max_bytes=2**30,
        search="pruned",
        keep_held_out=False,
        n_jobs=None,
        verbose=False,
        missing_features="raise",
        input_shape=None,
        output_shape=None,
        sample_dim=None,
    ):
        self.alphas = alphas
        self.ranks = ranks
        self.cv = cv
        self.max_rank = max_rank
        self.kernel = kernel
        self.gammas = gammas
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.kernels = kernels
        self.subspaces = subspaces
        self.refine = refine
        self.max_iter = max_iter
        self.tol = tol
        self.criterion = criterion
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.center_kernel = center_kernel
        self.solver = solver
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state
        self.max_bytes = max_bytes
        self.search = search
        self.keep_held_out = keep_held_out
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.missing_features = missing_features
        self.input_shape = input_shape
        self.output_shape = output_shape
        self.sample_dim = sample_dim

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        return multilinear_grid(*resolve_ranks(self), shape, subspaces=self.subspaces)

    def _structure(self, rank: tuple[int, ...]) -> MultilinearRank:
        return MultilinearRank(
            rank, self.subspaces, self.refine, max_iter=self.max_iter, tol=self.tol
        )
