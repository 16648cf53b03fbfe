"""
Choose the ranks: error surface, one-standard-error rule and stack
==================================================================

``HOLRRCV`` computes the cross-validated error of every rank and penalty in one pass. This example
shows the error surface and compares three ways of choosing from it.
"""

# %%
# Data
# ----
# The data have twelve inputs and outputs of 10 x 8 x 5. The coefficients have the ranks (4, 3, 2,
# 2), and the noise is twice as strong as the signal.

import matplotlib.pyplot as plt
import numpy as np

from holrr import HOLRRCV, RLSCV
from holrr.datasets import make_tensor_regression
from holrr.plotting import RankSurfaceDisplay

X, Y, W = make_tensor_regression(
    500, 12, (10, 8, 5), rank=(4, 3, 2, 2), snr=0.5, return_coef=True, random_state=3
)
modes = ["input", "place", "hour", "variable"]
model = HOLRRCV(selection="1se").fit(X[:150], Y[:150])
print(f"{model.cv_results_['mean_mse'].size:,} models compared, rank {model.rank_} chosen")

# %%
# Error surface
# -------------
# The curves show the held-out error along the rank of each mode, with the other ranks as chosen,
# and along the penalty. Dotted lines are the errors of the mean and of ridge regression. The maps
# show pairs of modes; a white line encloses the ranks within one standard error of the choice.
# The error falls steeply up to the chosen rank and rises slowly beyond it, so a rank that is too
# large costs less than a rank that is too small.

RankSurfaceDisplay.from_estimator(model, mode_names=modes)
plt.show()

# %%
# The spectra need no held-out data. A few directions of each mode have most of the energy, and
# the energy of the others falls slowly, as that of noise does. The vertical lines are the chosen
# ranks.

fig, axes = plt.subplots(1, 4, figsize=(10, 2.5), layout="constrained", sharey=True)
for ax, mode, energy, rank in zip(axes, modes, model.spectra_, model.rank_, strict=True):
    ax.semilogy(range(1, 1 + len(energy)), energy / model.energy_, "o-")
    ax.axvline(rank + 0.5, color="grey")
    ax.set(title=mode, xlabel="direction")
axes[0].set_ylabel("share of the energy")
plt.show()

# %%
# Three selection rules
# ---------------------
# ``selection="min"`` takes the least held-out error, ``"1se"`` the smallest model within one
# standard error of it, and ``"stack"``, the default, a mixture of several models. The true
# coefficients are known here, so the error of the predicted means can be computed. The bars show
# it relative to ridge regression: mean and range over three training sets of each size.

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
# All three errors are much lower than that of ridge regression. With 25 samples the stack is
# better than the best single rank; with more samples both are equally good. The
# one-standard-error rule has a slightly larger error, since its models are smaller. Use it for
# interpretation, and the stack for prediction.
