"""
Choose ranks and penalty by cross-validation
============================================

Coefficients of order four have four ranks, and a grid search over all ranks would need thousands of
fits. ``HOLRRCV`` computes the exact held-out error of every rank and penalty at the cost of a few
fits. This example shows the error surface and compares three ways to choose a model from it.
"""

# %%
# Data
# ----
# There are twelve inputs and outputs of 10 x 8 x 5. The coefficients have the ranks (4, 3, 2, 2),
# and the noise has twice the standard deviation of the signal.

import matplotlib.pyplot as plt
import numpy as np

from holrr import HOLRRCV, RLSCV
from holrr.datasets import make_tensor_regression
from holrr.plotting import RankSurfaceDisplay, SpectrumDisplay

X, Y, W = make_tensor_regression(
    500, 12, (10, 8, 5), rank=(4, 3, 2, 2), snr=0.5, return_coef=True, random_state=3
)
modes = ["input", "place", "hour", "kind"]
model = HOLRRCV(selection="1se").fit(X[:150], Y[:150])
print(f"{model.cv_results_['mean_mse'].size:,} models compared, rank {model.rank_} chosen")

# %%
# Error surface
# -------------
# The curves show the held-out error as a function of the rank of each mode, with the other ranks at
# their chosen values, and as a function of the penalty. The dotted lines are the errors of the mean
# and of ridge regression. The maps show pairs of modes. The error decreases steeply up to the
# chosen rank and increases slowly beyond it: a rank that is too small costs more than one that is
# too large. The white line encloses models within one standard error of the choice.

RankSurfaceDisplay.from_estimator(model, mode_names=modes)
plt.show()

# %%
# The spectra show the same result without held-out data: a few directions of each mode have large
# singular values, and the others decrease slowly, as noise does.

SpectrumDisplay.from_estimator(model, mode_names=modes)
plt.show()

# %%
# Compare min, 1se and stack
# --------------------------
# ``selection="min"`` chooses the model with the least held-out error, ``"1se"`` the smallest model
# within one standard error of it, and ``"stack"``, the default, a mixture of several models. The
# noiseless outputs are known here. The bars show the error relative to them as a share of the error
# of ridge regression: the mean and the range over three training sets of each size.

truth, sizes, alphas = np.tensordot(X, W, 1), [25, 50, 100], np.logspace(-1, 3, 9)
shares = {"min": [], "1se": [], "stack": []}
for n in sizes:
    sets = [np.random.default_rng(seed).permutation(500)[:n] for seed in range(3)]
    ridge = [np.linalg.norm(RLSCV(alphas).fit(X[s], Y[s]).predict(X) - truth) for s in sets]
    for choice, share in shares.items():
        fits = [HOLRRCV(alphas, max_rank=5, selection=choice).fit(X[s], Y[s]) for s in sets]
        errors = [np.linalg.norm(fit.predict(X) - truth) for fit in fits]
        share.append(np.divide(errors, ridge))

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for k, (choice, share) in enumerate(shares.items()):
    mean, at = np.mean(share, axis=1), np.arange(3) + 0.25 * (k - 1)
    ax.bar(at, mean, 0.22, label=choice)
    ax.vlines(at, np.min(share, axis=1), np.max(share, axis=1), "k")
ax.set_xticks(range(3), [f"{n} samples" for n in sizes])
ax.set(ylabel="error, ridge = 1", ylim=(0, 1))
ax.legend(ncols=3)
plt.show()

# %%
# All three have a much lower error than ridge regression, and the ratio decreases with the number
# of samples. With 25 samples the stack is better than the best single rank; with more samples the
# two are equal. The one-standard-error rule has a slightly larger error in exchange for smaller
# models. Use ``"1se"`` for interpretation and ``"stack"`` for prediction.
