"""The choice of a search by its definition: separate fits to each fold, and loops over models.

A model is a tuple ``(candidate, alpha, rank)``: `candidate` is the index of the kernel, and the
rank of ridge regression is None. `alpha` is a tuple for ridge regression that averages penalties
for each output. The mean of the training outputs is ``MEAN``. A mixture is a list of pairs of a
model and its weight.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import nnls
from sklearn import config_context

from holrr import (
    HOLRR,
    HOLRRCV,
    LRR,
    LRRCV,
    RLS,
    KernelHOLRR,
    KernelHOLRRCV,
    KernelLRR,
    KernelLRRCV,
    KernelRLS,
)
from reference import chances_of_penalties

PLAIN = {HOLRRCV: HOLRR, LRRCV: LRR, KernelHOLRRCV: KernelHOLRR, KernelLRRCV: KernelLRR}
FULL = {HOLRRCV: RLS, LRRCV: RLS, KernelHOLRRCV: KernelRLS, KernelLRRCV: KernelRLS}
SHARED = ("fit_intercept", "kernel", "landmarks", "random_state", "center_kernel")
WAYS = ("ridge regression", "ranks", "ranks and penalties of outputs")
MEAN = "mean"
N_RANKS = 4  # at most, of each mode


# ---------------------------------------------------------------- folds


def groups_of(splits):
    """Pairs of folds that are left out together, and folds that share no test sample with them."""
    n = len(splits)
    tests = [set(test.tolist()) for _, test in splits]
    shared = np.array([[bool(a & b) for a in tests] for b in tests])
    if shared.sum() == n:
        left_out = [list(part) for part in np.array_split(np.arange(n), min(n, 5))]
    else:
        left_out = [[int(k)] for k in np.unique(np.linspace(0, n - 1, min(n, 10)).round())]
    found = []
    for out in left_out:
        others = [k for k in range(n) if k not in out]
        apart = [k for k in others if not shared[k, out].any()]
        found.append((out, apart or others or out))
    return found


def crossed(errors, splits):
    """Error of the best of several models that the other folds choose.

    Parameters
    ----------
    errors : array of shape (n_folds, ...)
        Errors of all models in each fold.
    """
    flat, total, n = errors.reshape(len(errors), -1), 0.0, 0
    for out, kept in groups_of(splits):
        best = np.nanargmin(flat[kept].mean(axis=0))
        total, n = total + flat[out, best].sum(), n + len(out)
    return total / n


def first_least(errors):
    """Name of the least error, the first of those that are equal up to a millionth."""
    least = min(errors.values())
    return next(name for name, error in errors.items() if error <= least * (1 + 1e-6))


# ---------------------------------------------------------------- separate fits


class Fits:
    """Separate fits to subsets of the data, each of which is computed once.

    Parameters
    ----------
    search : HOLRRCV, LRRCV, KernelHOLRRCV or KernelLRRCV
        Fitted search, of which only the parameters and the grids are used.
    """

    def __init__(self, search, X, Y, w=None):
        self.X, self.Y, self.w = X, Y, np.ones(len(X)) if w is None else np.asarray(w, dtype=float)
        self.kind, self.gammas = type(search), getattr(search, "gammas", None)
        params = search.get_params()
        self.shared = {name: params[name] for name in SHARED if name in params}
        self.multilinear = self.kind in (HOLRRCV, KernelHOLRRCV)
        self.found = {}

    def predict(self, train, new, model):
        """Predictions of a model that is fitted to some samples."""
        X, Y, w = self.X[train], self.Y[train], self.w[train]
        if isinstance(model, str):
            mean = np.average(Y, axis=0, weights=w)
            if not self.shared.get("fit_intercept", True):
                mean = 0 * mean
            return np.broadcast_to(mean, (len(new), *Y.shape[1:]))
        candidate, alpha, rank = model
        if np.ndim(alpha):
            chances = self.chances(train, candidate, alpha)
            each = [self.predict(train, new, (candidate, one, None)) for one in alpha]
            return sum(p * found for p, found in zip(chances, each, strict=True))
        given = {**self.given(candidate), "alpha": alpha}
        if rank is None:
            fit = FULL[self.kind](**given)
        else:
            rank = rank if self.multilinear else rank[0]
            fit = PLAIN[self.kind](rank=rank, **given)
        with config_context(skip_parameter_validation=True):
            return fit.fit(X, Y, w).predict(new)

    def given(self, candidate):
        """Parameters of a fit."""
        more = {} if self.gammas is None else {"gamma": self.gammas[candidate]}
        return {**self.shared, **more}

    def chances(self, train, candidate, alphas):
        """Posterior probabilities of penalties for each output, from hat matrices."""
        w = self.w[train]
        train, w = train[w > 0], w[w > 0]
        n, mean = len(train), np.outer(np.ones(len(w)), w / w.sum())
        given = self.given(candidate)
        intercept = given.pop("fit_intercept", True)
        centred = intercept and given.get("center_kernel", True)
        Y = self.Y[train].reshape(n, -1)
        Y = np.sqrt(w)[:, None] * (Y - mean @ Y if intercept else Y)
        hats = []
        for alpha in alphas:
            fit = FULL[self.kind](alpha=alpha, fit_intercept=centred, **given)
            H = fit.fit(self.X[train], np.eye(n), w).predict(self.X[train]) - centred * mean
            hats.append(np.sqrt(w)[:, None] * H / np.sqrt(w))
        return chances_of_penalties(hats, Y, w.sum() - 1).reshape(-1, *self.Y.shape[1:])

    def residual(self, split, model):
        """Held-out residuals, scaled so that the sum of their squares is the error."""
        train, test = split
        key = (test.tobytes(), train.tobytes(), model)
        if key not in self.found:
            away = self.predict(train, self.X[test], model) - self.Y[test]
            v = self.w[test] / self.w[test].sum() / (self.Y[test].size / len(test))
            self.found[key] = np.sqrt(v)[:, None] * away.reshape(len(test), -1)
        return self.found[key]


def mixture(model, X, Y, w=None):
    """The weighted predictions of separate fits of the parts of a search, and of the mean."""
    fits, everything = Fits(model, X, Y, w), np.arange(len(X))
    candidate = None if fits.gammas is None else list(fits.gammas).index(model.gamma_)
    out = (1 - model.stack_weights_.sum()) * fits.predict(everything, X, MEAN)
    parts = zip(model.stack_alphas_, model.stack_ranks_, model.stack_weights_, strict=True)
    for alpha, rank, weight in parts:
        alpha = tuple(alpha) if np.ndim(alpha) else alpha
        out = out + weight * fits.predict(everything, X, (candidate, alpha, rank))
    return out


# ---------------------------------------------------------------- the choice


class NaiveChoice:
    """The choice among three ways by cross-fitted errors.

    Parameters
    ----------
    search : HOLRRCV, LRRCV, KernelHOLRRCV or KernelLRRCV
        Fitted search, of which only the parameters and the grids are used.
    X, Y : arrays
    splits : list of (train, test)
    w : array of shape (n_samples,), optional
    mixes_ridge : bool
        Whether the search has no `max_rank`.

    Attributes
    ----------
    ways_mse : dict
        Cross-fitted error of each way.
    choice : str
    error, ridge_error, single_error : float
        Cross-fitted errors of the whole choice, of ridge regression and of the best rank.
    model : list of (model, weight)
    of_folds : list of list of (model, weight)
        Mixture of each fold, which was chosen without it.
    """

    def __init__(self, search, X, Y, splits, w=None, *, mixes_ridge=True):
        self.fits, self.splits = Fits(search, X, Y, w), splits
        self.n_folds, self.mixes_ridge = len(splits), mixes_ridge
        self.alphas = np.asarray(search.alphas, dtype=float)
        self.candidates = range(len(getattr(search, "gammas", [None])))
        self.n_parameters = search.cv_results_["n_parameters"]
        self.groups = groups_of(splits)
        self.surface = self._errors([tuple(i + 1 for i in R) for R in self._ranks()])
        self.ridge = self._errors([None])[..., 0]
        self.ridge_error = crossed(self.ridge, splits)
        self.single_error = crossed(self.surface, splits)
        self.everything = self._best(range(self.n_folds), None)
        self.bests = [self._best(kept, self.everything) for _, kept in self.groups]
        ways = WAYS if mixes_ridge else WAYS[:2]
        found = {way: [self._without(way, g) for g in range(len(self.groups))] for way in ways}
        sizes = [len(out) for out, _ in self.groups]
        self.ways_mse = {
            way: np.average([error for _, error, _ in found[way]], weights=sizes) for way in ways
        }
        self.choice = first_least(self.ways_mse)
        self.error, chosen = 0.0, []
        for g, size in enumerate(sizes):
            inner = {way: np.mean(found[way][g][2]) for way in ways if found[way][g][2]}
            way = first_least(inner) if inner else self.choice
            self.error += found[way][g][1] * size / sum(sizes)
            chosen.append(list(zip(self._parts(way, g), found[way][g][0], strict=True)))
        parts = self._parts(self.choice, None)
        kept = [k for k in map(self._apart, combinations(range(len(sizes)), 2)) if k]
        kept = kept or [kept for _, kept in self.groups]
        w = np.mean([self._weights(self.choice, None, folds) for folds in kept], axis=0)
        self.model = list(zip(parts, w, strict=True))
        groups = [self._group_of(fold) for fold in range(self.n_folds)]
        self.of_folds = [self.model if g is None else chosen[g] for g in groups]

    # ------------------------------------------------------------ errors

    def _ranks(self):
        return list(np.ndindex(*self.n_parameters.shape))

    def _errors(self, ranks):
        """Errors of all folds, candidates, penalties and ranks."""
        shape = (self.n_folds, len(self.candidates), self.alphas.size, len(ranks))
        errors = np.empty(shape)
        for fold, k, a, r in np.ndindex(*shape):
            model = (k, float(self.alphas[a]), ranks[r])
            errors[fold, k, a, r] = (self.fits.residual(self.splits[fold], model) ** 2).sum()
        return errors

    def _apart(self, groups):
        """Folds that share no test sample with any of some groups."""
        return [k for k in range(self.n_folds) if all(k in self.groups[g][1] for g in groups)]

    def _group_of(self, fold):
        return next((g for g, (out, _) in enumerate(self.groups) if fold in out), None)

    # ------------------------------------------------------------ best models of some folds

    def _best(self, folds, everything):
        """Best models by the errors of some folds."""
        folds, all_ranks = list(folds), self._ranks()
        mean, ridge = self.surface[folds].mean(axis=0), self.ridge[folds].mean(axis=0)
        tied = np.argwhere(mean <= mean.min() * (1 + 1e-9))
        k, a, r = min(tied.tolist(), key=lambda i: self.n_parameters.ravel()[i[2]])
        ranks = [r, *self._path(mean[k, a])]
        if everything and (k, a) == everything["place"]:  # those of all folds
            ranks = [r, *everything["ranks"]]
        errors = [ridge[k, a]] if self.mixes_ridge else []
        different = []  # the smallest rank of each model, without ridge regression
        for i in sorted(
            set(ranks), key=lambda i: (self.n_parameters.ravel()[i], sum(all_ranks[i]))
        ):
            if all(abs(mean[k, a, i] - error) > 1e-9 * error for error in errors):
                errors.append(mean[k, a, i])
                different.append(i)
        found = {"place": (k, a), "ranks": different}
        found["ridge"] = tuple(int(i) for i in np.unravel_index(ridge.argmin(), ridge.shape))
        found["outputs"] = self._averaged(ridge[k].argmin())
        return found

    def _path(self, errors):
        """Indices of the best ranks with a few ranks of each mode, each model once."""
        shape, found = self.n_parameters.shape, []
        for mode, size in enumerate(shape):
            others = np.prod(shape) // size
            size = min(size, others) if len(shape) > 1 else size
            for R in np.unique(np.geomspace(1, size, min(N_RANKS, size)).round().astype(int)):
                among = [i for i, index in enumerate(self._ranks()) if index[mode] == R - 1]
                least = min(errors[i] for i in among)
                tied = [i for i in among if errors[i] <= least * (1 + 1e-9)]
                found.append(min(tied, key=lambda i: self.n_parameters.ravel()[i]))
        return found

    def _averaged(self, common):
        """Penalties about whole decades from a common one."""
        logs = np.log10(self.alphas)
        near = [np.abs(logs - logs[common] - step).argmin() for step in range(-3, 4)]
        return tuple(float(self.alphas[a]) for a in np.unique([*near, common]))

    # ------------------------------------------------------------ ways

    def _parts(self, way, group):
        """Models of a way, without a group or with all folds."""
        best = self.everything if group is None else self.bests[group]
        if way == "ridge regression":
            k, a = best["ridge"]
            return [(k, float(self.alphas[a]), None)]
        k, a = best["place"]
        alpha, ranks = float(self.alphas[a]), self._ranks()
        parts = [(k, alpha, tuple(i + 1 for i in ranks[r])) for r in best["ranks"]]
        if self.mixes_ridge:
            parts.append((k, alpha, None))
        if way == "ranks and penalties of outputs":
            parts.append((k, best["outputs"], None))
        return [*parts, MEAN]

    def _residuals(self, way, group, folds):
        """Residuals of the parts in some folds, of shape (n_residuals, n_parts)."""
        parts, found = self._parts(way, group), []
        for fold in folds:
            columns = [self.fits.residual(self.splits[fold], part).ravel() for part in parts]
            found.append(np.stack(columns, axis=1))
        return np.concatenate(found) / np.sqrt(len(folds))

    def _weights(self, way, group, folds):
        """Weights of least error in some folds: not negative, and their sum is one."""
        A = self._residuals(way, group, folds)
        if not A.any():
            return np.full(A.shape[1], 1 / A.shape[1])
        n, A = A.shape[1], A / np.linalg.norm(A)
        tie = 1e-4 * np.linalg.norm(A, axis=0).min() * np.eye(n)  # identical models share weight
        # The minimum of |A w|^2 + (sum(w) - 1)^2 is in the direction of the constrained one.
        A = np.linalg.qr(np.vstack([A, tie, np.ones(n)]))
        w = nnls(A.R, A.Q[-1])[0]
        return w / w.sum()

    def _without(self, way, group):
        """Weights without a group, its error, and errors of the others without either group."""
        weights, inner = [], []
        for other in range(len(self.groups)):
            folds = self._apart((group, other))
            if other == group or not folds:
                continue
            w = self._weights(way, group, folds)
            weights.append(w)
            there = [k for k in self.groups[other][0] if k in self.groups[group][1]]
            if there:
                inner.append(np.sum((self._residuals(way, group, there) @ w) ** 2))
        weights = weights or [self._weights(way, group, self.groups[group][1])]
        w = np.mean(weights, axis=0)
        A = self._residuals(way, group, self.groups[group][0])
        return w, float(np.sum((A @ w) ** 2)), inner

    # ------------------------------------------------------------ predictions

    def predict(self, new):
        """Predictions of the final model."""
        everything = np.arange(len(self.fits.X))
        return sum(w * self.fits.predict(everything, new, model) for model, w in self.model)

    def held_out(self):
        """Mean over the folds of the predictions of models that were chosen without them."""
        X = self.fits.X
        total, count = np.zeros(self.fits.Y.shape), np.zeros(len(X))
        for (train, test), mixture in zip(self.splits, self.of_folds, strict=True):
            total[test] += sum(w * self.fits.predict(train, X[test], m) for m, w in mixture)
            count[test] += 1
        with np.errstate(invalid="ignore"):
            return total / count.reshape(-1, *[1] * (total.ndim - 1))
