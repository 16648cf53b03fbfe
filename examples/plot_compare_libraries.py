"""
Compare scikit-learn, himalaya, TensorLy and holrr
==================================================

Ridge regression and PLS of scikit-learn, ridge regression of himalaya, CP regression of TensorLy
and ``HOLRRCV`` are fitted to the same training sets. Libraries that are not installed are left
out.
"""

# %%
# Data
# ----
# There are two tasks with 60 training and 1000 test samples. The simulated one has eight inputs,
# outputs of 6 x 5, coefficients of rank (3, 2, 2), and noise as strong as the signal. The real
# one predicts the lower half of handwritten digits from a coarse image of the upper half, 2 x 4
# blocks. CP regression has no intercept, so inputs and outputs are centred and scaled for all
# methods.

import time
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold

from holrr import HOLRRCV
from holrr.datasets import make_tensor_regression

digits = np.random.default_rng(0).permutation(load_digits().images)[:1060] / 16
upper = digits[:, :4].reshape(1060, 2, 2, 4, 2).mean(axis=(2, 4))
tasks = {
    "simulated": make_tensor_regression(1060, 8, (6, 5), rank=(3, 2, 2), snr=1.0, random_state=0),
    "digits": (upper.reshape(1060, -1), digits[:, 4:]),
}

# %%
# Searches
# --------
# All searches use the same five folds and the squared error. Ridge regression and HOLRR use the
# same grid of penalties (himalaya chooses a penalty for each output). PLS has up to eight
# components, CP regression four ranks and three penalties. Only HOLRR and CP regression use the
# shape of the outputs.


def neg_mse(model, X, Y):
    return -np.mean((model.predict(X) - Y) ** 2)


folds = KFold(5, shuffle=True, random_state=0)
alphas = np.logspace(-2, 4, 13)
components = {"n_components": range(1, 9)}
flat = {
    "scikit-learn RidgeCV": RidgeCV(alphas, cv=folds, scoring="neg_mean_squared_error"),
    "scikit-learn PLS": GridSearchCV(PLSRegression(), components, cv=folds, scoring=neg_mse),
}
tensor = {}
if find_spec("himalaya"):
    from himalaya.ridge import RidgeCV as HimalayaRidgeCV

    flat["himalaya RidgeCV"] = HimalayaRidgeCV(alphas, cv=folds, fit_intercept=True)
if find_spec("tensorly"):
    from tensorly.regression.cp_regression import CPRegressor

    class CP(CPRegressor, BaseEstimator):
        """CPRegressor with the interface that GridSearchCV requires."""

    cp = CP(1, n_iter_max=25, random_state=0, verbose=0)
    grid = {"weight_rank": [1, 2, 4, 8], "reg_W": [1.0, 3.0, 10.0]}
    tensor["TensorLy CPRegressor"] = GridSearchCV(cp, grid, cv=folds, scoring=neg_mse)
tensor["HOLRRCV"] = HOLRRCV(alphas, cv=folds)
print("left out:", [name for name in ("himalaya", "tensorly") if not find_spec(name)] or "nothing")

# %%
# Errors and times
# ----------------

found = {task: {} for task in tasks}
for task, (X, Y) in tasks.items():
    A = (X - X[:60].mean(axis=0)) / X[:60].std()
    B = (Y - Y[:60].mean(axis=0)) / Y[:60].std()
    for name, search in (flat | tensor).items():
        shape = (-1,) if name in flat else B.shape[1:]
        start = time.perf_counter()
        with np.errstate(all="ignore"):  # CP regression divides by weights that may vanish
            search.fit(A[:60], B[:60].reshape(60, *shape))
        seconds = time.perf_counter() - start
        predicted = search.predict(A[60:]).reshape(1000, *B.shape[1:])
        r2 = 1 - np.sum((predicted - B[60:]) ** 2) / np.sum(B[60:] ** 2)
        found[task][name] = r2, seconds
        print(f"{task:>9}, {name:<21} R2 {r2:.3f}, {seconds:.2f} s")

# %%
# Results
# -------
# On the simulated data the two methods that use the shape of the outputs have the highest R2. On
# the digits HOLRR and ridge regression are equally good, and PLS and CP regression are worse. CP
# regression chooses the largest rank of its grid there; with ranks up to 16 it reaches an R2 of
# 0.096. himalaya is the fastest; it chooses the penalty only. HOLRR takes about as long as the
# searches of scikit-learn and compares all ranks. CP regression takes more than ten times as
# long.

fig, axes = plt.subplots(2, 2, figsize=(9, 5), layout="constrained", sharey=True)
for line, (task, results) in zip(axes, found.items(), strict=True):
    r2, seconds = zip(*results.values(), strict=True)
    line[0].barh(list(results), r2, color=["C1" if n == "HOLRRCV" else "C0" for n in results])
    line[1].plot(seconds, list(results), "o")
    line[0].set(xlabel="R2 on 1000 new samples", title=task)
    line[1].set(xlabel="seconds for the whole search", title=task, xscale="log", xlim=(1e-3, 1e2))
axes[0, 0].invert_yaxis()
plt.show()
