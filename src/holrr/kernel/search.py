"""Searches over kernels, penalties and ranks: KernelRLSCV, KernelLRRCV and KernelHOLRRCV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ..core.approximate import FullRank, MatrixRank, MultilinearRank, Structure
from ..core.checks import check_finite
from ..core.namespace import Array
from ..data.output_scale import divide_outputs, multiply_outputs
from ..data.validation import Names, Samples, validate, whole_points
from ..linear.estimators import MULTILINEAR_CONSTRAINTS
from ..model_selection.folds import Split, split
from ..model_selection.grid import RankGrid, check_penalties, matrix_grid, multilinear_grid
from ..model_selection.linear import (
    SEARCH_CONSTRAINTS,
    FoldFits,
    HeldOutMean,
    Search,
    check_search,
    chosen_rank,
    resolve_selection,
    search_attributes,
    shared_parameters,
)
from ..model_selection.pruning import pruned_surface
from ..model_selection.search import Choice, Found, SearchOptions, run_search
from ..model_selection.sources import Problems
from ..streaming.chunks import Chunks
from .candidates import KernelSpec, check_kernels, kernel_function, some_samples
from .estimators import KERNEL_CONSTRAINTS, KernelHOLRR, KernelLRR, KernelRLS
from .fit import KernelOptions, fit_landmarks, fit_samples
from .landmarks import Landmarks, choose_landmarks
from .sources import Gram, LandmarkMoments, training_inputs

__all__ = ["KernelHOLRRCV", "KernelLRRCV", "KernelRLSCV"]


class KernelSearch(Search):
    """Base class of searches over kernels, penalties and ranks.

    A subclass defines its parameters, the grid of ranks and the structure of a rank.
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        **{name: found for name, found in KERNEL_CONSTRAINTS.items() if name != "gamma"},
        **SEARCH_CONSTRAINTS,
        "gammas": "no_validation",
        "kernel": [*KERNEL_CONSTRAINTS["kernel"], list, tuple],
    }

    _estimator: type
    refine: bool = False

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        """Return the grid of ranks for coefficients of this shape."""
        raise NotImplementedError

    def _structure(self, rank: tuple[int, ...]) -> Structure:
        """Return the structure of a rank."""
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        sample_dim: Any = None,
    ) -> Any:
        """Choose kernel, penalty and rank by cross-validation, and fit the model to all data.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Inputs: a NumPy array, an array of another library that follows the array API standard,
            a DataFrame or an xarray object. With ``kernel="precomputed"``, the Gram matrix of shape
            (n_samples, n_samples). With landmarks, memory maps and Dask arrays are read in
            chunks (see docs/streaming.md). Cells of arrays with modes and of labelled arrays
            that are NaN in every sample, such as land in a field of the sea, are left out.
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of any order p >= 0. Scalar targets have shape (n_samples,).
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in fits and held-out errors.
        groups : array of shape (n_samples,), optional
            Group labels of the samples, for splitters such as ``GroupKFold``.
        sample_dim : str, optional
            Sample dimension of xarray objects. By default, it is the dimension that `X` and `y`
            share. If they share several, it is the first one, which must be the same in both.

        Returns
        -------
        self
            The fitted estimator.
        """
        data, names = validate(
            self,
            X,
            y,
            sample_weight,
            groups=groups,
            sample_dim=sample_dim,
            in_chunks=self._uses_landmarks,
        )
        options = replace(self._options(data), groups=groups)
        data, scale = divide_outputs(self, data, names.labels)
        if isinstance(data, Samples):
            data = data.scaled(inputs=False)
            check_finite(data.Y, "y")
        splits, specs = split(data, self.cv, groups), self._candidates(data)
        points = self._choose_points(data, names, specs)
        problems = Problems(self._source(data, splits, points), specs)
        found = run_search(problems, options, self._fit_options)
        found = replace(found, fit=multiply_outputs(self, found.fit, scale, names.labels))
        fits = None
        if isinstance(data, Samples):
            how = self._fit_options(found.choice)
            of_folds = [found.choice.of_fold(fold) for fold in range(len(splits))]
            some = tuple(replace(how, structure=one, alpha=a) for _, a, one, _ in of_folds)
            numbers = tuple(candidate for candidate, _, _, _ in of_folds)
            fits = FoldFits(data.n_samples, tuple(splits), some, numbers)
        self._assign_search(found, names, data, specs, points, fits, scale)
        return self._label_rows(X, y)

    # ------------------------------------------------------------ steps

    def _options(self, data: Samples | Chunks) -> SearchOptions:
        """Return the checked parameters of the search."""
        self._grid((data.n_samples, *data.output_shape))  # raises for a bad max_rank
        options = SearchOptions(
            name=type(self).__name__,
            grid=self._grid,
            structure=self._structure,
            alphas=check_penalties(self.alphas, "alphas"),
            selection=resolve_selection(self),
            prune=pruned_surface,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            fit_intercept=self.fit_intercept,
            named_candidates=True,
        )
        check_search(options)
        return options

    def _choose_points(
        self, data: Samples | Chunks, names: Names, specs: Sequence[KernelSpec]
    ) -> Array | None:
        """Return the landmarks; None for an exact fit."""
        if not self._uses_landmarks:
            return None
        kernel = specs[0]["kernel"]
        return choose_landmarks(data, names, kernel, self.landmarks, self.random_state)

    def _source(
        self, data: Samples | Chunks, splits: Sequence[Split], points: Array | None
    ) -> Gram | LandmarkMoments:
        how = {"fit_intercept": self.fit_intercept, "center_kernel": self.center_kernel}
        if points is not None:
            return LandmarkMoments(data, splits, points, **how)
        assert isinstance(data, Samples)
        return Gram(data, splits, **how)

    def _assign_search(
        self,
        found: Found,
        names: Names,
        data: Samples | Chunks,
        specs: list[KernelSpec],
        points: Array | None,
        fits: FoldFits | None,
        scale: np.ndarray | None,
    ) -> None:
        """Assign all fitted attributes, including the attributes of the final model."""
        chosen = specs[found.choice.candidate]
        whole = None if points is None else whole_points(points, names)
        model = self._model(found.choice.alpha, chosen_rank(found), chosen, whole)
        if isinstance(data, Samples) and points is None:
            model._assign_fit(found.fit, names, inputs=data.X)
        else:
            model._assign_fit(found.fit, names, features=model._draw_features(data, names))
        found.results["kernels"] = specs
        y_unit = data.y_unit if isinstance(data, Samples) else 1.0
        attributes = search_attributes(found, model, y_unit, scale=scale)
        attributes["best_params_"] |= specs[found.choice.index[0]]
        attributes |= {"n_iter_": vars(model).get("n_iter_"), "_fold_fits": fits}
        self._assign(found.fit, names, kernels_=specs, landmarks_=whole, **attributes)
        self.kernel_params_, self.gamma_ = dict(chosen), chosen.get("gamma")

    def _predict_folds(self, data: Samples, fits: FoldFits) -> np.ndarray:
        data, points = data.scaled(inputs=False), vars(self).get("landmarks_")
        kernels, found = [kernel_function(spec) for spec in self.kernels_], HeldOutMean(data)
        of_folds = zip(fits.splits, fits.options, fits.candidates, strict=True)
        for (train, test), options, candidate in of_folds:
            part, kernel = data.rows(train), kernels[candidate]
            features = None if points is None else Landmarks.of(kernel, points)
            part = replace(part, X=training_inputs(kernel, data.X, train, train))
            if features is None:
                others, fit = part.X, fit_samples(part, kernel, options)
            else:
                others = features.points
                fit = fit_landmarks(features, features.moments(part), options, data.y_unit)
            K = kernel(training_inputs(kernel, data.X, test, train), others)
            found.add(test, fit.predict(K))
        return found.mean()

    def _candidates(self, data: Any) -> list[KernelSpec]:
        """Return the kernels to try."""
        names = ("degree", "coef0", "kernel_params")
        default: KernelSpec = {name: getattr(self, name) for name in names}
        return check_kernels(self.kernel, default, self.gammas, *some_samples(data)[:2])

    def _fit_options(self, choice: Choice) -> KernelOptions:
        """Return the options of the final fit of a choice."""
        return KernelOptions(
            structure=choice.structure,
            alpha=choice.alpha,
            fit_intercept=self.fit_intercept,
            center_kernel=self.center_kernel,
        )

    def _model(self, alpha: float, rank: Any, chosen: KernelSpec, points: Array | None) -> Any:
        """Return the chosen estimator, unfitted."""
        shared = shared_parameters(self, self._estimator)
        shared.pop("random_state")
        shared["landmarks"] = points
        if rank is not None:
            shared["rank"] = rank
        return self._estimator(alpha=alpha, **{**shared, **chosen})

    @property
    def _uses_landmarks(self) -> bool:
        return self.landmarks is not None

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
        tags.input_tags.pairwise = self.kernel in ("precomputed", ["precomputed"])
        return tags


class KernelRLSCV(KernelSearch):
    """Kernel ridge regression for tensor outputs with cross-validated kernel and penalty.

    One eigendecomposition for each fold and kernel gives the exact held-out errors of all
    penalties. See docs/kernels.md.

    Parameters
    ----------
    alphas : array of shape (n_alphas,), float or None, default=None
        Penalties to try, at least 0 and all different, in any order. By default, the search tries
        penalties in half decades, from 1e-5 to 1e2 times the mean eigenvalue of the Gram matrix.
        With several kernels, the grid covers the mean eigenvalues of all their Gram matrices.
    cv : int, splitter or iterable, default=5
        Number of folds, a splitter of scikit-learn, or an iterable of pairs of training and test
        indices.
    kernel : str, callable or list, default="rbf"
        Kernel: the name of a pairwise kernel of scikit-learn ("linear", "rbf", "poly", "laplacian",
        "cosine", "sigmoid", ...), "precomputed", or a function of two samples. A list has candidate
        kernels: names, functions, or dicts with the key "kernel" and any of the keys "gamma",
        "degree", "coef0" and "kernel_params". The parameters of these names fill in keys that a
        candidate does not have. The search tries all `gammas` for each candidate without a gamma.
    gammas : float, list of floats or None, default=None
        Values of gamma to try. By default, the search tries six values for "rbf" and "laplacian",
        from 0.01 to 3.16 times the inverse of the median distance between samples (the squared
        Euclidean distance for "rbf", the sum of absolute differences for "laplacian"). Other
        kernels have their default gamma.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Constant term of the polynomial and sigmoid kernels.
    kernel_params : dict or None, default=None
        Keyword arguments of a callable kernel.
    selection : {"min", "1se"} or callable, default="min"
        How to choose the penalty. "min" chooses the penalty with the least error, and "1se" the
        largest penalty within one standard error of the least error. A callable takes `cv_results_`
        and returns an index into ``mean_mse``.
    fit_intercept : bool, default=True
        Whether to fit an intercept, by centring the outputs. The intercept is not penalised.
    center_kernel : bool, default=True
        Whether to centre the features of the kernel as well as the outputs if an intercept is
        fitted. With centred features the intercept is optimal, and a linear kernel gives the same
        model as `RLS`.
    scale_outputs : "std", array of shape (d1, ..., dp) or None, default=None
        Divisors of the outputs in the fit, so that outputs in different units count equally. "std"
        divides each output by its standard deviation over the training samples; a labelled array
        must have the labels of the outputs. Predictions, coefficients and noise are in the units of
        y, and `score` and held-out errors are those of the divided outputs.
    output_shape : tuple of int or None, default=None
        Modes ``(d1, ..., dp)`` of flat outputs. With `output_shape`, y and the predictions have
        shape (n_samples, D), where D is the number of outputs.
    input_shape : tuple of int, dict or None, default=None
        Modes ``(m1, ..., mq)`` of flat inputs of shape (n_samples, n_features). A dict from names
        to shapes splits the columns into consecutive blocks.
    landmarks : int, array of shape (n_landmarks, n_features) or None, default=None
        Landmarks of the Nystroem approximation, or their number. A number is drawn once from all
        samples, without regard to y, and are the same for all folds and kernels. Memory and time
        then grow linearly with the number of samples. None is the exact fit.
    n_jobs : int or None, default=None
        Number of folds that run in parallel, each with a share of the threads. By default, as many
        folds run in parallel as the linear algebra library has threads.
    verbose : bool, default=False
        Whether to show a progress bar, which needs ``pip install "holrr[progress]"``.
    random_state : int, RandomState or None, default=None
        Seed of the draw of the landmarks.

    Attributes
    ----------
    best_estimator_ : KernelRLS
        Final model, fitted to all data.
    kernel_params_ : dict
        Chosen kernel and its parameters, with the keys that `kernel` describes.
    gamma_ : float or None
        Parameter gamma of the chosen kernel; None if the kernel has its default gamma or no gamma.
    alpha_ : float
        Chosen penalty.
    cv_results_ : dict
        Results of the search: ``mean_mse`` and ``std_mse``, of shape (n_kernels, n_alphas), are the
        mean and the standard deviation of the mean squared error over the folds, and ``fold_mse``
        has a first axis of folds. The axis of kernels is present even for one kernel. ``kernels``
        equals `kernels_`. `HOLRRCV` describes the other entries.
    kernels_ : list of dict
        Kernels that the search tried.
    alphas_ : array of shape (n_alphas,)
        Penalties that the search tried.
    landmarks_ : array of shape (n_landmarks, n_features)
        Landmarks of the final model, if it uses landmarks.
    best_index_ : tuple of int
        Index (kernel, penalty) of the chosen model in the error surface.
    best_score_ : float
        Score of the best single model: minus its held-out error.
    best_params_ : dict
        Penalty and kernel parameters of the chosen model.
    held_out_mse_ : float
        Held-out error of the final model.
    null_mse_ : float
        Held-out error of predicting the mean, for comparison.
    ridge_mse_ : float
        Least held-out error of kernel ridge regression on the same folds, for comparison.
    noise_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Standard deviation of the noise of each output, from held-out residuals. See
        docs/intervals.md.
    dual_coef_ : array of shape (n_samples, d1, ..., dp), or (n_samples, D) with `output_shape`
        Dense coefficients of the kernel values with `X_fit_`, computed on access. With landmarks,
        the first axis has one entry for each landmark.
    intercept_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Intercept of each output.
    tucker_ : Tucker
        Coefficients of the final model in Tucker form.
    n_parameters_ : int
        Number of free parameters of the coefficients of the final model, without the intercept.
    output_scale_ : array of shape (d1, ..., dp), or (D,) with `output_shape`
        Divisor of each output, with `scale_outputs`. `core_` and `factors_` describe the divided
        outputs.
    n_features_in_ : int
        Number of features of `X`.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if `X` had names in `fit`.
    labels_ : Labels or None
        Names and coordinates of the samples, inputs and outputs, if the data had labels.

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

    _shares_directions = False

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
        selection="min",
        fit_intercept=True,
        center_kernel=True,
        scale_outputs=None,
        output_shape=None,
        input_shape=None,
        landmarks=None,
        n_jobs=None,
        verbose=False,
        random_state=None,
    ):
        self.alphas = alphas
        self.cv = cv
        self.kernel = kernel
        self.gammas = gammas
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.center_kernel = center_kernel
        self.scale_outputs = scale_outputs
        self.output_shape = output_shape
        self.input_shape = input_shape
        self.landmarks = landmarks
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        return RankGrid(())

    def _structure(self, rank: tuple[int, ...]) -> FullRank:
        return FullRank()


class KernelLRRCV(KernelSearch):
    """Low-rank kernel regression with cross-validated kernel, penalty and rank.

    One eigendecomposition for each fold and kernel gives the exact held-out errors of all ranks and
    penalties. See docs/kernels.md.

    Parameters
    ----------
    alphas : array of shape (n_alphas,), float or None, default=None
        Penalties to try, at least 0 and all different, in any order. By default, the search tries
        penalties in half decades, from 1e-5 to 1e2 times the mean eigenvalue of the Gram matrix.
        With several kernels, the grid covers the mean eigenvalues of all their Gram matrices.
    cv : int, splitter or iterable, default=5
        Number of folds, a splitter of scikit-learn, or an iterable of pairs of training and test
        indices.
    max_rank : int or None, default=None
        Largest rank to try.
    kernel : str, callable or list, default="rbf"
        Kernel: the name of a pairwise kernel of scikit-learn ("linear", "rbf", "poly", "laplacian",
        "cosine", "sigmoid", ...), "precomputed", or a function of two samples. A list has candidate
        kernels: names, functions, or dicts with the key "kernel" and any of the keys "gamma",
        "degree", "coef0" and "kernel_params". The parameters of these names fill in keys that a
        candidate does not have. The search tries all `gammas` for each candidate without a gamma.
    gammas : float, list of floats or None, default=None
        Values of gamma to try. By default, the search tries six values for "rbf" and "laplacian",
        from 0.01 to 3.16 times the inverse of the median distance between samples (the squared
        Euclidean distance for "rbf", the sum of absolute differences for "laplacian"). Other
        kernels have their default gamma.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Constant term of the polynomial and sigmoid kernels.
    kernel_params : dict or None, default=None
        Keyword arguments of a callable kernel.
    selection : {"auto", "stack", "min", "1se"} or callable, default="auto"
        How to choose the final model from the held-out errors.

        - "stack" mixes about twenty models: several ranks at the best penalty, the best rank at a
          smaller and at a larger penalty, ridge regression, and the mean. The held-out errors
          determine the weights, and the mixture is one model. With `max_rank`, the stack
          mixes ranks at one penalty, so that its rank stays within these bounds. See
          docs/model_selection.md.
        - "min" chooses the single model with the least error.
        - "1se" chooses the model with the fewest parameters among those within one standard error
          of the least error. Ties are broken in favour of the largest penalty.
        - A callable takes `cv_results_` and returns an index into the error surface.
        - "auto" is "stack".
    fit_intercept : bool, default=True
        Whether to fit an intercept, by centring the outputs. The intercept is not penalised.
    center_kernel : bool, default=True
        Whether to centre the features of the kernel as well as the outputs if an intercept is
        fitted. With centred features the intercept is optimal, and a linear kernel gives the same
        model as `LRR`.
    scale_outputs : "std", array of shape (d1, ..., dp) or None, default=None
        Divisors of the outputs in the fit, so that outputs in different units count equally. "std"
        divides each output by its standard deviation over the training samples; a labelled array
        must have the labels of the outputs. Predictions, coefficients and noise are in the units of
        y, and `score` and held-out errors are those of the divided outputs.
    output_shape : tuple of int or None, default=None
        Modes ``(d1, ..., dp)`` of flat outputs. With `output_shape`, y and the predictions have
        shape (n_samples, D), where D is the number of outputs.
    input_shape : tuple of int, dict or None, default=None
        Modes ``(m1, ..., mq)`` of flat inputs of shape (n_samples, n_features). A dict from names
        to shapes splits the columns into consecutive blocks.
    landmarks : int, array of shape (n_landmarks, n_features) or None, default=None
        Landmarks of the Nystroem approximation, or their number. A number is drawn once from all
        samples, without regard to y, and are the same for all folds and kernels. Memory and time
        then grow linearly with the number of samples. None is the exact fit.
    n_jobs : int or None, default=None
        Number of folds that run in parallel, each with a share of the threads. By default, as many
        folds run in parallel as the linear algebra library has threads.
    verbose : bool, default=False
        Whether to show a progress bar, which needs ``pip install "holrr[progress]"``.
    random_state : int, RandomState or None, default=None
        Seed of the draw of the landmarks.

    Attributes
    ----------
    rank_ : int
        Rank of the final model. A stack that includes ridge regression has full rank.
    best_estimator_ : KernelLRR
        Final model, fitted to all data.
    kernel_params_ : dict
        Chosen kernel and its parameters, with the keys that `kernel` describes.
    gamma_ : float or None
        Parameter gamma of the chosen kernel; None if the kernel has its default gamma or no gamma.
    cv_results_ : dict
        Results of the search: ``mean_mse`` and ``std_mse``, of shape (n_kernels, n_alphas, R0), are
        the mean and the standard deviation of the mean squared error over the folds, and
        ``fold_mse`` has a first axis of folds. The axis of kernels is present even for one kernel.
        ``kernels`` equals `kernels_`. `HOLRRCV` describes the other entries.
    kernels_ : list of dict
        Kernels that the search tried.
    alphas_ : array of shape (n_alphas,)
        Penalties that the search tried.
    landmarks_ : array of shape (n_landmarks, n_features)
        Landmarks of the final model, if it uses landmarks.
    held_out_mse_ : float
        Held-out error of the final model. The held-out error of a stack is cross-fitted: the
        weights for each fold come from the other folds.
    null_mse_ : float
        Held-out error of predicting the mean, for comparison.
    ridge_mse_ : float
        Least held-out error of kernel ridge regression on the same folds, for comparison.
    stack_ranks_ : list of tuples
        Ranks of the models of a stack, in order of decreasing weight; None for ridge regression.
    stack_alphas_ : array of shape (n_models,)
        Penalties of the models of a stack.
    stack_weights_ : array of shape (n_models,)
        Weights of the models of a stack, which all have the same kernel. One minus their sum is the
        weight of the mean.
    best_index_ : tuple of int
        Index (kernel, penalty, ranks) of the best single model in the error surface. The best
        single model is the choice of `selection`; for a stack, the model with the least error.
    best_score_ : float
        Score of the best single model: minus its held-out error.
    best_params_ : dict
        Penalty, rank and kernel parameters of the best single model.
    alpha_ : float
        Penalty of the best single model. A stack can also mix a smaller and a larger penalty.
    noise_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Standard deviation of the noise of each output, from held-out residuals. See
        docs/intervals.md.
    dual_coef_ : array of shape (n_samples, d1, ..., dp), or (n_samples, D) with `output_shape`
        Dense coefficients of the kernel values with `X_fit_`, computed on access. With landmarks,
        the first axis has one entry for each landmark.
    intercept_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Intercept of each output.
    tucker_ : Tucker
        Coefficients of the final model in Tucker form.
    core_ : array of shape (R, d1, ..., dp)
        Outputs for each of the R latent functions.
    factors_ : list of p + 1 arrays
        Factors of the Tucker form: the coefficients of the latent functions, of shape
        (n_samples, R), then identity matrices.
    spectra_ : list of p + 1 arrays
        Squared singular values of the whitened data. Only the entry of the input mode is not empty.
    n_parameters_ : int
        Number of free parameters of the coefficients of the final model, without the intercept.
    output_scale_ : array of shape (d1, ..., dp), or (D,) with `output_shape`
        Divisor of each output, with `scale_outputs`. `core_` and `factors_` describe the divided
        outputs.
    n_features_in_ : int
        Number of features of `X`.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if `X` had names in `fit`.
    labels_ : Labels or None
        Names and coordinates of the samples, inputs and outputs, if the data had labels.

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
        cv=5,
        *,
        max_rank=None,
        kernel="rbf",
        gammas=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        selection="auto",
        fit_intercept=True,
        center_kernel=True,
        scale_outputs=None,
        output_shape=None,
        input_shape=None,
        landmarks=None,
        n_jobs=None,
        verbose=False,
        random_state=None,
    ):
        self.alphas = alphas
        self.cv = cv
        self.max_rank = max_rank
        self.kernel = kernel
        self.gammas = gammas
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.center_kernel = center_kernel
        self.scale_outputs = scale_outputs
        self.output_shape = output_shape
        self.input_shape = input_shape
        self.landmarks = landmarks
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        return matrix_grid(self.max_rank, shape)

    def _structure(self, rank: tuple[int, ...]) -> MatrixRank:
        return MatrixRank(rank[0])


class KernelHOLRRCV(KernelSearch):
    """Higher-order low-rank kernel regression with cross-validated kernel, penalty and ranks.

    The search computes the exact held-out error of *every* multilinear rank and penalty without
    refitting, from one eigendecomposition for each fold and kernel. See docs/kernels.md.

    Parameters
    ----------
    alphas : array of shape (n_alphas,), float or None, default=None
        Penalties to try, at least 0 and all different, in any order. By default, the search tries
        penalties in half decades, from 1e-5 to 1e2 times the mean eigenvalue of the Gram matrix.
        With several kernels, the grid covers the mean eigenvalues of all their Gram matrices.
    cv : int, splitter or iterable, default=5
        Number of folds, a splitter of scikit-learn, or an iterable of pairs of training and test
        indices.
    max_rank : int, tuple or None, default=None
        Largest rank to try, either one int for all modes or a tuple ``(R0, ..., Rp)`` with the
        input mode first.
    kernel : str, callable or list, default="rbf"
        Kernel: the name of a pairwise kernel of scikit-learn ("linear", "rbf", "poly", "laplacian",
        "cosine", "sigmoid", ...), "precomputed", or a function of two samples. A list has candidate
        kernels: names, functions, or dicts with the key "kernel" and any of the keys "gamma",
        "degree", "coef0" and "kernel_params". The parameters of these names fill in keys that a
        candidate does not have. The search tries all `gammas` for each candidate without a gamma.
    gammas : float, list of floats or None, default=None
        Values of gamma to try. By default, the search tries six values for "rbf" and "laplacian",
        from 0.01 to 3.16 times the inverse of the median distance between samples (the squared
        Euclidean distance for "rbf", the sum of absolute differences for "laplacian"). Other
        kernels have their default gamma.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Constant term of the polynomial and sigmoid kernels.
    kernel_params : dict or None, default=None
        Keyword arguments of a callable kernel.
    selection : {"auto", "stack", "min", "1se"} or callable, default="auto"
        How to choose the final model from the held-out errors.

        - "stack" mixes about twenty models: several ranks at the best penalty, the best rank at a
          smaller and at a larger penalty, ridge regression, and the mean. The held-out errors
          determine the weights, and the mixture is one model. With `max_rank`, the stack
          mixes ranks at one penalty, so that its rank stays within these bounds. See
          docs/model_selection.md.
        - "min" chooses the single model with the least error.
        - "1se" chooses the model with the fewest parameters among those within one standard error
          of the least error. Ties are broken in favour of the largest penalty.
        - A callable takes `cv_results_` and returns an index into the error surface.
        - "auto" is "stack", or "min" with ``refine=True``.
    refine : bool, default=False
        Whether to refine the final fit by alternating least squares. The held-out errors are those
        of the fits before refinement. Refined fits cannot be stacked, so the search chooses a
        single rank.
    fit_intercept : bool, default=True
        Whether to fit an intercept, by centring the outputs. The intercept is not penalised.
    center_kernel : bool, default=True
        Whether to centre the features of the kernel as well as the outputs if an intercept is
        fitted. With centred features the intercept is optimal, and a linear kernel gives the same
        model as `HOLRR`.
    scale_outputs : "std", array of shape (d1, ..., dp) or None, default=None
        Divisors of the outputs in the fit, so that outputs in different units count equally. "std"
        divides each output by its standard deviation over the training samples; a labelled array
        must have the labels of the outputs. Predictions, coefficients and noise are in the units of
        y, and `score` and held-out errors are those of the divided outputs.
    output_shape : tuple of int or None, default=None
        Modes ``(d1, ..., dp)`` of flat outputs. With `output_shape`, y and the predictions have
        shape (n_samples, D), where D is the number of outputs.
    input_shape : tuple of int, dict or None, default=None
        Modes ``(m1, ..., mq)`` of flat inputs of shape (n_samples, n_features). A dict from names
        to shapes splits the columns into consecutive blocks.
    landmarks : int, array of shape (n_landmarks, n_features) or None, default=None
        Landmarks of the Nystroem approximation, or their number. A number is drawn once from all
        samples, without regard to y, and are the same for all folds and kernels. Memory and time
        then grow linearly with the number of samples. None is the exact fit.
    n_jobs : int or None, default=None
        Number of folds that run in parallel, each with a share of the threads. By default, as many
        folds run in parallel as the linear algebra library has threads.
    verbose : bool, default=False
        Whether to show a progress bar, which needs ``pip install "holrr[progress]"``.
    random_state : int, RandomState or None, default=None
        Seed of the draw of the landmarks.

    Attributes
    ----------
    rank_ : tuple of int
        Multilinear rank of the final model, which is the shape of `core_`. A stack that includes
        ridge regression has full rank.
    best_estimator_ : KernelHOLRR
        Final model, fitted to all data.
    kernel_params_ : dict
        Chosen kernel and its parameters, with the keys that `kernel` describes.
    gamma_ : float or None
        Parameter gamma of the chosen kernel; None if the kernel has its default gamma or no gamma.
    cv_results_ : dict
        Results of the search: ``mean_mse`` and ``std_mse``, of shape
        (n_kernels, n_alphas, R0, ..., Rp), are the mean and the standard deviation of the mean
        squared error over the folds, and ``fold_mse`` has a first axis of folds. The axis of
        kernels is present even for one kernel. ``kernels`` equals `kernels_`. `HOLRRCV` describes
        the other entries.
    kernels_ : list of dict
        Kernels that the search tried.
    alphas_ : array of shape (n_alphas,)
        Penalties that the search tried.
    landmarks_ : array of shape (n_landmarks, n_features)
        Landmarks of the final model, if it uses landmarks.
    held_out_mse_ : float
        Held-out error of the final model (before refinement, with ``refine=True``). The held-out
        error of a stack is cross-fitted: the weights for each fold come from the other folds.
    null_mse_ : float
        Held-out error of predicting the mean, for comparison.
    ridge_mse_ : float
        Least held-out error of kernel ridge regression on the same folds, for comparison.
    stack_ranks_ : list of tuples
        Ranks of the models of a stack, in order of decreasing weight; None for ridge regression.
    stack_alphas_ : array of shape (n_models,)
        Penalties of the models of a stack.
    stack_weights_ : array of shape (n_models,)
        Weights of the models of a stack, which all have the same kernel. One minus their sum is the
        weight of the mean.
    best_index_ : tuple of int
        Index (kernel, penalty, ranks) of the best single model in the error surface. The best
        single model is the choice of `selection`; for a stack, the model with the least error.
    best_score_ : float
        Score of the best single model: minus its held-out error.
    best_params_ : dict
        Penalty, rank and kernel parameters of the best single model.
    alpha_ : float
        Penalty of the best single model. A stack can also mix a smaller and a larger penalty.
    noise_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Standard deviation of the noise of each output, from held-out residuals. See
        docs/intervals.md.
    dual_coef_ : array of shape (n_samples, d1, ..., dp), or (n_samples, D) with `output_shape`
        Dense coefficients of the kernel values with `X_fit_`, computed on access. With landmarks,
        the first axis has one entry for each landmark.
    intercept_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Intercept of each output.
    tucker_ : Tucker
        Coefficients of the final model in Tucker form.
    core_ : array of shape (R0, ..., Rp)
        Core of the Tucker form of the coefficients.
    factors_ : list of p + 1 arrays
        Factors of the Tucker form: the coefficients of the latent functions, of shape
        (n_samples, R0), then the output factors, of shape (d_i, R_i), with orthonormal columns. The
        latent functions are linear in the kernel values with `X_fit_`.
    spectra_ : list of p + 1 arrays
        Leading squared singular values of each unfolding of the whitened data, input mode first.
    n_parameters_ : int
        Number of free parameters of the coefficients of the final model, without the intercept.
    n_iter_ : int
        Number of iterations, including the spectral fit.
    output_scale_ : array of shape (d1, ..., dp), or (D,) with `output_shape`
        Divisor of each output, with `scale_outputs`. `core_` and `factors_` describe the divided
        outputs.
    n_features_in_ : int
        Number of features of `X`.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if `X` had names in `fit`.
    labels_ : Labels or None
        Names and coordinates of the samples, inputs and outputs, if the data had labels.

    See Also
    --------
    KernelHOLRR : Higher-order low-rank kernel regression with given kernel, penalty and ranks.
    HOLRRCV : Search over penalties and ranks of linear models.

    Notes
    -----
    Entry ``[k, a, i, j, ...]`` of the error surface belongs to ``kernels_[k]``, ``alphas_[a]`` and
    the rank ``(i + 1, j + 1, ...)``. The largest input rank is the number of outputs, since larger
    ranks give the same model, or the largest rank that a training fold supports.

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
        cv=5,
        *,
        max_rank=None,
        kernel="rbf",
        gammas=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        selection="auto",
        refine=False,
        fit_intercept=True,
        center_kernel=True,
        scale_outputs=None,
        output_shape=None,
        input_shape=None,
        landmarks=None,
        n_jobs=None,
        verbose=False,
        random_state=None,
    ):
        self.alphas = alphas
        self.cv = cv
        self.max_rank = max_rank
        self.kernel = kernel
        self.gammas = gammas
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.selection = selection
        self.refine = refine
        self.fit_intercept = fit_intercept
        self.center_kernel = center_kernel
        self.scale_outputs = scale_outputs
        self.output_shape = output_shape
        self.input_shape = input_shape
        self.landmarks = landmarks
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        return multilinear_grid(self.max_rank, shape)

    def _structure(self, rank: tuple[int, ...]) -> MultilinearRank:
        return MultilinearRank(rank, refine=self.refine)
