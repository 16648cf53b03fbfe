"""Docstrings of the estimators, with one text for each parameter and attribute.

A class writes its summary, formula, example, notes and references. The decorator `document` inserts
the sections Parameters and Attributes from the texts of this module: the parameters of ``__init__``
in their order, and the public attributes, which are annotations or properties of the class and its
bases. A text for some classes names them, or their bases, in brackets; "" stands for all others.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any, TypeVar

__all__ = ["document"]

Class = TypeVar("Class", bound=type)


def document(cls: Class) -> Class:
    """Insert the sections Parameters and Attributes into the docstring of an estimator."""
    if cls.__doc__ is None:  # python -OO
        return cls
    parameters = dict(inspect.signature(cls).parameters)
    entries = {name: _text(cls, PARAMETERS, name) for name in parameters}
    for name, (kind, *_) in entries.items():
        entries[name][0] = f"{name} : {kind}, default={_shown(parameters[name].default)}"
    public = {name for base in cls.__mro__ for name in _attributes(base)}
    if public - ATTRIBUTES.keys():
        raise KeyError(f"{cls.__name__} has attributes without text: {public - ATTRIBUTES.keys()}")
    found = {name: _text(cls, ATTRIBUTES, name) for name in ATTRIBUTES if name in public}
    attributes = [[f"{name} : {kind}", *text] for name, (kind, *text) in found.items() if kind]
    sections = [_section("Parameters", entries.values()), _section("Attributes", attributes)]
    if "cv" in parameters:
        usual = {name: _text(cls, USUALLY, name)[0] for name in USUALLY if name in parameters}
        sections.insert(0, _table({name: when for name, when in usual.items() if when}))
    # The first paragraphs have no titles; See Also, Notes and References follow.
    own = re.split(r"\n\n(?=\w[\w ]*\n---)", inspect.cleandoc(cls.__doc__))
    cls.__doc__ = "\n\n".join([own[0], *sections, *own[1:]]) + "\n"
    return cls


def _attributes(cls: type) -> list[str]:
    """Return the names of public fitted attributes that a class annotates or computes."""
    computed = [name for name, value in vars(cls).items() if isinstance(value, property)]
    found = [*inspect.get_annotations(cls), *computed]
    return [name for name in found if name.endswith("_") and not name.startswith("_")]


def _text(cls: type, texts: dict[str, dict[str, list[str]]], name: str) -> list[str]:
    """Return the text for a class or the nearest of its bases; an empty line if there is none."""
    owners = [*(base.__name__ for base in cls.__mro__), ""]
    return next((list(texts[name][owner]) for owner in owners if owner in texts[name]), [""])


def _section(title: str, entries: Iterable[list[str]]) -> str:
    return "\n".join([title, "-" * len(title), *("\n".join(entry) for entry in entries)])


def _table(rows: dict[str, str]) -> str:
    """Return a table of the parameters that are usually changed."""
    width = 4 + max(map(len, rows))
    line = f"{'=' * width}  {'=' * 76}"
    found = [f"``{name}``".ljust(width + 2) + when for name, when in rows.items()]
    return "\n".join(["Usually changed:", "", line, *found, line])


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _texts(source: str) -> dict[str, dict[str, list[str]]]:
    """Return the entries by name and by class ("" for all other classes)."""
    found: dict[str, dict[str, list[str]]] = {}
    for entry in re.split(r"\n(?=\S)", source.strip()):
        head, *lines = entry.rstrip().split("\n")
        title, kind = head.split(" : ", 1)
        name, _, classes = title.removesuffix("]").partition(" [")
        for cls in classes.split(", "):
            found.setdefault(name, {})[cls] = [kind, *lines]
    return found


# Parameters of searches that are usually changed, and when.
USUALLY = _texts("""
cv : a splitter, if samples depend on each other in time or within groups
kernel : a list of kernels to choose from, or another kernel than "rbf"
selection [LRRCV, HOLRRCV, KernelLRRCV, KernelHOLRRCV] : "min", to read the factors of a single rank
alpha_per_output : True, if some outputs are noisier than others
missing : "ignore", if outputs are missing
scale_outputs : "std", if outputs have different units
blocks : several kinds of inputs, which need different penalties
own : the name of a mode that inputs and outputs share, such as the station
landmarks : a few hundred, if there are more than about ten thousand samples
""")

PARAMETERS = _texts(r"""
alphas : array of shape (n_alphas,), float or None
    Penalties to try, at least 0. By default, thirteen in half decades, from 1e-4 to 1e2 times the
    mean eigenvalue of ``X'X``, and more while the error decreases towards an end.
alphas [KernelSearch] : array of shape (n_alphas,), float or None
    Penalties to try, at least 0. By default, penalties in half decades, from 1e-5 to 1e2 times the
    mean eigenvalue of the Gram matrix, of all kernels if there are several.
cv : int, splitter or iterable
    Number of folds, a splitter, or an iterable of pairs of training and test indices.
max_rank [LRRCV, KernelLRRCV] : int or None
    Largest rank to try. Ridge regression is then not mixed with the ranks.
max_rank [HOLRRCV, KernelHOLRRCV] : int, tuple or None
    Largest rank, an int or ``(R0, ..., Rp)``. Ridge regression is then not mixed with the ranks.
rank [LRR, KernelLRR] : int, float or None
    Maximum rank, capped at the number of features. A float in (0, 1) is the share of the squared
    norm of the whitened data to keep. None is full rank, which is ridge regression.
rank [HOLRR, KernelHOLRR] : int, float, tuple or None
    Maximum multilinear rank. An int is used for every mode, capped at the size of the mode. A float
    in (0, 1) selects, for each mode, the smallest rank that keeps this share of the squared norm of
    the whitened data. A tuple ``(R0, ..., Rp)`` has one such entry for each mode, input mode first.
    None is full rank, which is ridge regression.
rank [MLMTNC] : int, float, tuple or None
    Shape of the core. An int is used for every mode, capped at the size of the mode. A float in
    (0, 1) selects, for each mode, the smallest rank that keeps this share of the squared norm of
    the whitened data. A tuple ``(R0, ..., Rp)`` has one such entry for each mode, input mode first.
    None is full rank.
alpha : float
    Ridge penalty, at least 0.
alpha [RLS] : float, dict, or array of shape (d1, ..., dp)
    Ridge penalty, at least 0. With 0, the fit is the least squares solution of minimum norm. A dict
    maps the name of each block of inputs (see `blocks`) to its penalty; an infinite penalty leaves
    a block out of the model. An array, with the labels of the outputs if it is labelled, has one
    penalty for each output.
alpha [LRR, HOLRR] : float or dict
    Ridge penalty, at least 0. A dict maps the name of each block of inputs (see `blocks`) to its
    penalty. An infinite penalty leaves a block out of the model. A penalty of 0 fits a block
    without shrinkage and without a constraint on its rank, as the intercept is fitted.
alpha [KernelRLS] : float
    Ridge penalty, at least 0. With 0, the fit is the least squares solution of minimum norm.
penalty : float
    Weight :math:`\lambda` of the trace norms, at least 0. With 0, the fit is that of
    ``RLS(alpha)``. The coefficients are zero if the penalty is at least `penalty_max_`.
beta : float
    Penalty on the squared norms of the core and the factors, above 0.
mode_weights : sequence of p + 1 floats or None
    Relative weights :math:`w_i` of the modes, input mode first. By default all weights are one. A
    mode of weight 0 is not penalised.
selection : {"auto", "stack", "min", "1se"} or callable
    How to choose the final model from the held-out errors.

    - "stack" takes the way of least cross-fitted error: "ridge regression"; "ranks", a mixture of
      several ranks, ridge regression and the mean; or "ranks and penalties of outputs", which adds
      ridge regression that averages penalties for each output. If outputs are missing, it takes a
      mixture of ranks or the best single rank.
    - "min" takes the single model of least error, "1se" the smallest one within a standard error.
    - "auto" is "stack", or "min" with ``refine=True``. A callable maps `cv_results_` to an index.
selection [RLSCV, KernelRLSCV] : {"min", "1se"} or callable
    How to choose the penalty. "min" chooses the penalty with the least error, and "1se" the largest
    penalty within one standard error of the least error. A callable takes `cv_results_` and returns
    an index into ``mean_mse``.
alpha_per_output : bool
    Whether to choose a penalty for each output by its own held-out error, among the penalties that
    the search for a common penalty tries. It needs ``selection="min"`` and complete outputs, and
    cannot be combined with `blocks`.
kernel : str or callable
    Name of a pairwise kernel of scikit-learn ("linear", "rbf", "poly", "laplacian", "cosine",
    "sigmoid", ...), "precomputed", or a function of two samples. "linear", "poly", "rbf" and
    "sigmoid" accept arrays of any array library.
kernel [KernelSearch] : str, callable or list
    Name of a pairwise kernel of scikit-learn ("linear", "rbf", "poly", "laplacian", "cosine",
    "sigmoid", ...), "precomputed", or a function of two samples. A list has candidates: names,
    functions, or dicts with the key "kernel" and any of the keys "gamma", "degree", "coef0" and
    "kernel_params". All `gammas` are tried for each candidate without a gamma.
gamma : float or None
    Parameter gamma of the rbf, laplacian, polynomial, exponential chi2 and sigmoid kernels. None is
    the default of the kernel, which is ``1 / n_features`` for most kernels.
gammas : float, list of floats or None
    Values of gamma to try. By default, six values for "rbf" and "laplacian", from 0.01 to 3.16
    times the inverse of the median (squared Euclidean or absolute) distance between samples, and
    the default of other kernels.
degree : float
    Degree of the polynomial kernel.
coef0 : float
    Constant term of the polynomial and sigmoid kernels.
kernel_params : dict or None
    Keyword arguments of a callable kernel.
refine : bool
    Whether to refine the fit by alternating least squares (higher-order orthogonal iteration).
refine [HOLRRCV, KernelHOLRRCV] : bool
    Whether to refine the final fit by alternating least squares. It then has a single rank.
subspaces : {"fitted", "response"}
    Data that determine the output subspaces: the part of the outputs that the inputs explain
    ("fitted"), or the outputs themselves ("response"), as in the algorithms of the paper.
fit_intercept : bool
    Whether to fit an intercept. The intercept is not penalised.
center_kernel : bool
    Whether to centre the features of the kernel as well as the outputs if an intercept is fitted.
    With centred features the intercept is optimal, and a linear kernel gives the linear model.
loss : {"squared", "huber"}
    Loss of the fits. "huber" lowers weights of samples that others do not predict (docs/robust.md).
missing : {"raise", "ignore"}
    Whether values that are missing in y raise an error or are left out, see docs/missing.md.
output_weight : list of p arrays of shape (d_i,), array of shape (d1, ..., dp), or None
    Weights of the outputs in fits, held-out errors and `score`: a vector, or None, for each output
    mode, or an array that is the product of such vectors, apart from zeros with
    ``missing="ignore"``. A DataArray weights the modes that are its dimensions.
scale_outputs : "std", array of shape (d1, ..., dp) or None
    Divisors of the outputs in fits, held-out errors and `score`, so that outputs in different units
    count equally; "std" is the standard deviation of each output over the training samples.
output_shape : tuple of int or None
    Modes ``(d1, ..., dp)`` of flat outputs: y and the predictions have shape (n_samples, D).
input_shape : tuple of int, dict or None
    Modes ``(m1, ..., mq)`` of flat inputs; a dict of them splits the columns into blocks.
blocks : str, dict, list or None
    Blocks of inputs, whose penalties are a dict `alpha`: a dict from their names to their columns;
    the label of the block of each column; the name of a mode of `X`; "prefix" for columns named
    ``block__column``; or "auto" for the variables of a Dataset, the entries of a dict of arrays, or
    such prefixes. See docs/blocks.md.
blocks [LinearSearch] : str, dict, list or None
    Blocks of inputs, whose penalties the search chooses: a dict from their names to their columns;
    the label of the block of each column; the name of a mode of `X`; "prefix" for columns named
    ``block__column``; or "auto" for the variables of a Dataset, the entries of a dict of arrays, or
    such prefixes. See docs/blocks.md.
own : str, list, array of bool, or None
    Modes that `X` and `y` share, such as the station: inputs with the label of an output along them
    are its own inputs, with separate coefficients. Names of modes, "auto", pairs of an axis of a
    sample of X and one of y, or a boolean array of inputs by outputs. See docs/own_inputs.md.
own_alpha : float
    Ridge penalty of the coefficients of own inputs, in the units of `alpha`. With a penalty for
    each block, the penalty of an own input is `own_alpha` times the penalty of its block, divided
    by the geometric mean of the penalties of all blocks.
input_rank : int, tuple, dict or None
    Number of directions to keep of each of the modes (m1, ..., mq) of `X`: ints, one int for all
    modes (capped at their sizes), or a dict from names of blocks to such ranks. None, also as an
    entry, keeps all directions. See docs/inputs.md.
input_rank [LinearSearch] : "auto", int, tuple, dict or None
    Number of directions to keep of each of the modes (m1, ..., mq) of `X`: "auto" searches for them
    (unless outputs are missing in some samples); ints, one int for all modes, or a dict for blocks.
    None, also as an entry, keeps all directions. See docs/inputs.md.
input_alpha : float
    Ridge penalty that determines the directions of `input_rank`, as a multiple of the mean
    eigenvalue of ``X'X``: the directions are those of ridge coefficients with this penalty.
    Infinity uses the directions of ``X'Y``, as partial least squares does.
landmarks : int, array of shape (n_landmarks, n_features) or None
    Landmarks of the Nystroem approximation, or the number of samples to draw as landmarks. Memory
    and time then grow linearly with the number of samples. None is the exact fit. A search uses the
    same landmarks for all folds and kernels.
init : {"holrr", "random"}
    Start of the first descent: the HOLRR solution, or random values as in the original method.
n_init : int
    Number of descents, of which the best is kept. All descents after the first start at random.
warm_start : bool
    Whether to start from the solution of the previous call of `fit`. The estimator then keeps the
    state of the solver, up to 2 p + 3 arrays of the size of the coefficients.
max_iter : int
    Maximum number of iterations of the refinement, and of a fit with missing outputs.
max_iter [KernelHOLRR] : int
    Maximum number of iterations of the refinement.
max_iter [TraceNormRegression] : int
    Maximum number of iterations of the solver.
max_iter [MLMTNC] : int
    Maximum number of iterations. An iteration updates the core and all factors.
tol : float
    Tolerance. The fit stops when an iteration lowers the objective by at most this share of the
    objective.
tol [TraceNormRegression] : float
    Relative duality gap, ``1 - lower_bound_ / objective_``, at which the solver stops.
n_jobs : int or None
    Number of folds that run in parallel. By default, as many as there are threads for BLAS.
verbose : bool
    Whether to show a progress bar, which needs ``pip install "holrr[progress]"``.
verbose [PenalizedRegressor] : bool, int or "rich"
    Whether to print the progress of the solver. "rich" updates a single line and needs
    ``pip install "holrr[progress]"``.
random_state : int, RandomState or None
    Seed of the draw of the landmarks.
random_state [MLMTNC] : int, RandomState or None
    Seed of the random starts.
""")

ATTRIBUTES = _texts(r"""
rank_ [LRR, KernelLRR] : int
    Rank of the fit. It is lower than `rank` if the data do not support `rank`.
rank_ [HOLRR, KernelHOLRR] : tuple of int
    Multilinear rank of the fit. The fit lowers an input rank that the data do not support.
rank_ [LRRCV, KernelLRRCV] : int
    Rank of the final model; full if ridge regression is part of it.
rank_ [HOLRRCV, KernelHOLRRCV] : tuple of int
    Rank of the final model, the shape of `core_`; full if ridge regression is part of it.
rank_ [TraceNormRegression] : tuple of int
    Multilinear rank of the coefficients. All entries are zero if the coefficients are zero.
rank_ [MLMTNC] : tuple of int
    Shape of the core. The fit lowers a rank that the data do not support or that is above the
    product of the other ranks.
alpha_ : float
    Penalty of the final model.
alpha_ [RLSCV] : float, or array of shape (d1, ..., dp)
    Chosen penalty; one for each output with `alpha_per_output`.
choice_ : str
    Way that "stack" chose, one of ``cv_results_["ways"]``. Without it, the model is a single one.
stack_weights_ : array of shape (n_models,)
    Weights of the models of a stack, in decreasing order; the rest is the weight of the mean.
stack_ranks_ : list of tuples
    Rank of each model of a stack; None for ridge regression.
stack_alphas_ : list of floats and arrays
    Penalty of each model of a stack; an array of those that ridge regression averages by output.
held_out_mse_ : float
    Cross-fitted error of the whole choice: each fold is predicted by what the other folds choose.
    With "1se" or a callable, the held-out error of the chosen model.
ridge_mse_ : float
    Cross-fitted error of (kernel) ridge regression, comparable with `held_out_mse_`.
null_mse_ : float
    Held-out error of predicting the mean, comparable with `held_out_mse_`.
best_params_ : dict
    Penalty, rank and kernel of the best single model, as far as they are searched.
best_score_ : float
    Minus the held-out error of the best single model, ``-mean_mse[best_index_]``.
best_index_ : tuple of int
    Index of the best single model in the error surface.
best_estimator_ : estimator
    Final model, fitted to all data.
cv_results_ : dict
    Results: ``mean_mse``, the held-out errors, of shape (n_alphas,), and others, see
    docs/model_selection.md.
cv_results_ [KernelRLSCV] : dict
    Results: ``mean_mse``, the held-out errors, of shape (n_kernels, n_alphas), and others, see
    docs/model_selection.md.
cv_results_ [LRRCV, HOLRRCV] : dict
    Results: ``mean_mse``, the held-out errors, of shape (n_alphas, R0, ..., Rp) (for `LRRCV`
    (n_alphas, R0)), whose entry ``[a, i, j, ...]`` belongs to ``alphas_[a]`` and the rank
    ``(i + 1, j + 1, ...)``; ``ways`` and ``ways_mse``, the ways of "stack" and their cross-fitted
    errors; and others, see docs/model_selection.md.
cv_results_ [KernelLRRCV, KernelHOLRRCV] : dict
    Results: ``mean_mse``, the held-out errors, of shape (n_kernels, n_alphas, R0, ..., Rp) (for
    `KernelLRRCV` (n_kernels, n_alphas, R0)), whose entry ``[k, a, i, j, ...]`` belongs to
    ``kernels_[k]``, ``alphas_[a]`` and the rank ``(i + 1, j + 1, ...)``; ``ways`` and ``ways_mse``,
    the ways of "stack" and their cross-fitted errors; and others, see docs/model_selection.md.
alphas_ : array of shape (n_alphas,)
    Penalties that the search tried.
kernel_params_ : dict
    Chosen kernel and its parameters.
gamma_ : float or None
    Parameter gamma of the chosen kernel; None if the kernel has its default gamma or no gamma.
kernels_ : list of dict
    Kernels that the search tried.
landmarks_ : array of shape (n_landmarks, n_features)
    Landmarks of the final model, with `landmarks`.
coef_ : array of shape (n_features, d1, ..., dp), or (D, n_features) with `output_shape`
    Dense coefficients, computed on access, of shape (m1, ..., mq, d1, ..., dp) if `X` has modes; a
    dict with several blocks of inputs. NaN for inputs that are missing in every sample.
coef_ [KernelRegressor, KernelSearch] : array of shape (n_features, d1, ..., dp)
    Dense coefficients, computed on access, with ``kernel="linear"``; of shape (D, n_features) with
    `output_shape`.
intercept_ : array of shape (d1, ..., dp), or (D,) with `output_shape`, or float
    Intercept of each output.
dual_coef_ : array of shape (n_samples, d1, ..., dp), or (n_samples, D) with `output_shape`
    Dense coefficients of the kernel values with the training samples or landmarks.
X_fit_ : array of shape (n_samples, n_features) or None
    Training samples or landmarks; None for a precomputed kernel.
noise_ [LinearRegressor, KernelRegressor, Search] : array with the shape of `intercept_`
    Standard deviation of the noise of each output, from the (in searches held-out) residuals.
core_ : array of shape (R0, ..., Rp)
    Core of the Tucker form of the coefficients.
factors_ : list of p + 1 arrays of shape (d_i, R_i)
    Factors of the Tucker form, input mode first (for kernel models, of samples or landmarks).
tucker_ : Tucker
    Coefficients in Tucker form.
n_parameters_ : int
    Number of free parameters of the coefficients, without the intercept.
feature_importances_ : array of shape (n_features,)
    Norm of the coefficients of each feature over all outputs, for tools such as `RFE`.
objective_ : float
    Objective of the fit.
lower_bound_ : float
    Lower bound on the optimal objective at these ranks. It equals `objective_` if the fit is exact.
lower_bound_ [TraceNormRegression] : float
    Lower bound on the optimal objective, from the dual problem.
lower_bound_ [MLMTNC] : float
    Lower bound on the optimal objective: a lower bound on the squared error of tensors of these
    ranks, which is tight only for a small `beta`.
penalty_max_ : float
    Penalty at and above which all coefficients are zero. For p = 0 and p = 1 it is the smallest
    such penalty.
spectra_ : list of p + 1 arrays
    Leading squared singular values of each unfolding of the whitened data, input mode first.
spectra_ [LRR, LRRCV, KernelLRR, KernelLRRCV] : list of p + 1 arrays
    Squared singular values of the whitened data. Only the entry of the input mode is not empty.
energy_ : float
    Squared norm of the whitened data, which the model of full rank explains.
n_iter_ : int
    Number of iterations, including the spectral fit.
n_iter_ [RLS, LRR, RLSCV, LRRCV] : int
    Number of iterations of a fit with missing outputs.
n_iter_ [TraceNormRegression] : int
    Number of iterations of the solver.
n_iter_ [MLMTNC] : int
    Number of iterations of the best descent.
history_ [TraceNormRegression] : dict of arrays
    Progress of the solver: "iteration", "objective", "lower_bound", "primal_residual",
    "dual_residual" and "rho" (the step size), at each iteration that evaluated the objective.
history_ [MLMTNC] : array of shape (n_iterations + 1,)
    Objective of the best descent at its start and after each iteration.
n_dropped_ : int
    Number of samples without any observed output, with ``missing="ignore"``.
robust_weight_ : array of shape (n_samples,)
    Weight of each sample, between 0 and 1, with ``loss="huber"``.
solver_ : str
    Factorisation that the fit used.
moments_ : Moments
    Moments of the data, after `partial_fit` and `fit_moments`.
input_rank_ : tuple of int, or dict
    Number of directions of each mode of `X` that the fit keeps. Available if `X` has modes.
input_factors_ : list of q arrays of shape (m_k, r_k), or dict
    Orthonormal bases of the directions of each mode of `X`, with `input_rank`.
blocks_ : dict
    Positions of the columns of each block of inputs, with `blocks`.
block_alphas_ : dict
    Penalty of each block of inputs, with `blocks`; infinite for a block that is left out.
own_coef_ [LinearRegressor, LinearSearch] : array with the shape of `coef_`, or dict
    Coefficients of own inputs, which are part of `coef_`; zero for other inputs.
output_scale_ : array of shape (d1, ..., dp), or (D,) with `output_shape`
    Divisor of each output, with `scale_outputs`; `core_` is that of the divided outputs.
n_features_in_ : int
    Number of features of `X`.
feature_names_in_ : array of shape (n_features,)
    Names of the features, if `X` had names in `fit`.
labels_ : Labels or None
    Names and coordinates of the samples, inputs and outputs, if the data had labels.
""")
