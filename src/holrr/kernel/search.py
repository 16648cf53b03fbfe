"""Searches over kernels, penalties and ranks: KernelRLSCV, KernelLRRCV and KernelHOLRRCV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ..annotations import (
    CrossValidation,
    InputShape,
    Kernel,
    MaxRank,
    RandomState,
    Selection,
    SimpleSelection,
)
from ..calls import validates_parameters
from ..core.approximate import FullRank, MatrixRank, MultilinearRank, Structure
from ..core.checks import check_finite
from ..core.namespace import Array
from ..data.output_scale import divide_outputs, multiply_outputs
from ..data.validation import Names, Samples, validate, whole_points
from ..docstrings import document
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

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        **{name: found for name, found in KERNEL_CONSTRAINTS.items() if name != "gamma"},
        **SEARCH_CONSTRAINTS,
        "gammas": "no_validation",
        "kernel": [*KERNEL_CONSTRAINTS["kernel"], list, tuple],
    }

    _estimator: type

    kernel_params_: dict[str, Any]
    gamma_: float | None
    kernels_: list[dict[str, Any]]
    landmarks_: Array

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        """Return the grid of ranks for coefficients of this shape."""
        raise NotImplementedError

    def _structure(self, rank: tuple[int, ...]) -> Structure:
        """Return the structure of a rank."""
        raise NotImplementedError

    @validates_parameters
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sample_dim: str | None = None,
    ) -> Self:
        """Choose kernel, penalty and rank by cross-validation, and fit the model to all data.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Inputs: an array of any array library, a DataFrame or an xarray object, or with
            ``kernel="precomputed"`` the Gram matrix of shape (n_samples, n_samples). With
            landmarks, memory maps and Dask arrays are read in chunks (see docs/streaming.md).
            Cells of maps that are NaN in every sample are left out.
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of any order p >= 0. Scalar targets have shape (n_samples,).
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in fits and held-out errors.
        groups : array of shape (n_samples,), optional
            Group labels of the samples, for splitters such as ``GroupKFold``.
        sample_dim : str, optional
            Sample dimension of xarray objects. By default, the first one that `X` and `y` share.
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
        check_is_fitted(self)
        return self.best_estimator_.dual_coef_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel in ("precomputed", ["precomputed"])
        return tags


@document
class KernelRLSCV(KernelSearch):
    """Kernel ridge regression for tensor outputs with cross-validated kernel and penalty.

    One eigendecomposition for each fold and kernel gives the exact held-out errors of all
    penalties. See docs/kernels.md.

    >>> import numpy as np
    >>> from holrr.kernel import KernelRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(80, 1))
    >>> Y = np.sin(X * np.arange(1, 4))[:, :, None] + 0.1 * rng.normal(size=(80, 3, 2))
    >>> model = KernelRLSCV().fit(X, Y)
    >>> model.score(X, Y) > 0.97, model.kernel_params_["kernel"]
    (True, 'rbf')
    >>> low, high = model.predict_interval(X, coverage=0.9)
    >>> held_out = model.held_out_predictions(X, Y)
    """

    best_estimator_: KernelRLS

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        **KernelSearch._parameter_constraints,
        "selection": [StrOptions({"min", "1se"}), callable],
    }
    _estimator = KernelRLS

    _shares_directions = False

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        cv: CrossValidation = 5,
        *,
        kernel: Kernel | Sequence[Any] = "rbf",
        gammas: float | Sequence[float] | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        selection: SimpleSelection = "min",
        fit_intercept: bool = True,
        center_kernel: bool = True,
        scale_outputs: ArrayLike | None = None,
        output_shape: Sequence[int] | None = None,
        input_shape: InputShape = None,
        landmarks: int | ArrayLike | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
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
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        return RankGrid(())

    def _structure(self, rank: tuple[int, ...]) -> FullRank:
        return FullRank()


@document
class KernelLRRCV(KernelSearch):
    """Low-rank kernel regression with cross-validated kernel, penalty and rank.

    One eigendecomposition for each fold and kernel gives the exact held-out errors of all ranks and
    penalties. See docs/kernels.md.

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
    >>> held_out = model.held_out_predictions(X, Y)

    References
    ----------
    A. Mukherjee, J. Zhu (2011). Reduced rank ridge regression and its kernel extensions.
    Statistical Analysis and Data Mining 4(6), 612-622.
    """

    best_estimator_: KernelLRR
    rank_: int
    choice_: str
    stack_weights_: NDArray[Any]
    stack_ranks_: list[tuple[int, ...] | None]
    stack_alphas_: list[Any]
    spectra_: list[Array]

    _estimator = KernelLRR

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        cv: CrossValidation = 5,
        *,
        max_rank: int | None = None,
        kernel: Kernel | Sequence[Any] = "rbf",
        gammas: float | Sequence[float] | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        selection: Selection = "auto",
        fit_intercept: bool = True,
        center_kernel: bool = True,
        scale_outputs: ArrayLike | None = None,
        output_shape: Sequence[int] | None = None,
        input_shape: InputShape = None,
        landmarks: int | ArrayLike | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
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
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        return matrix_grid(self.max_rank, shape)

    def _structure(self, rank: tuple[int, ...]) -> MatrixRank:
        return MatrixRank(rank[0])


@document
class KernelHOLRRCV(KernelSearch):
    """Higher-order low-rank kernel regression with cross-validated kernel, penalty and ranks.

    The search computes the exact held-out error of *every* multilinear rank and penalty without
    refitting, from one eigendecomposition for each fold and kernel. See docs/kernels.md.

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
    >>> held_out = model.held_out_predictions(X, Y)

    See Also
    --------
    KernelHOLRR : Higher-order low-rank kernel regression with given kernel, penalty and ranks.
    HOLRRCV : Search over penalties and ranks of linear models.

    References
    ----------
    G. Rabusseau, H. Kadri (2016). Higher-order low-rank regression. arXiv:1602.06863.
    """

    best_estimator_: KernelHOLRR
    rank_: tuple[int, ...]
    choice_: str
    stack_weights_: NDArray[Any]
    stack_ranks_: list[tuple[int, ...] | None]
    stack_alphas_: list[Any]
    spectra_: list[Array]
    n_iter_: int

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        **KernelSearch._parameter_constraints,
        **MULTILINEAR_CONSTRAINTS,
    }
    _estimator = KernelHOLRR

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        cv: CrossValidation = 5,
        *,
        max_rank: MaxRank = None,
        kernel: Kernel | Sequence[Any] = "rbf",
        gammas: float | Sequence[float] | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        selection: Selection = "auto",
        refine: bool = False,
        fit_intercept: bool = True,
        center_kernel: bool = True,
        scale_outputs: ArrayLike | None = None,
        output_shape: Sequence[int] | None = None,
        input_shape: InputShape = None,
        landmarks: int | ArrayLike | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
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
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        return multilinear_grid(self.max_rank, shape)

    def _structure(self, rank: tuple[int, ...]) -> MultilinearRank:
        return MultilinearRank(rank, refine=self.refine)
