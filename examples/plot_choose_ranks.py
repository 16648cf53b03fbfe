"""
Choose the ranks: the surface, one standard error, the stack
============================================================

Coefficients of order four have four ranks, and a grid over them would mean thousands of fits.
``HOLRRCV`` computes the held-out error of every rank and penalty, exactly, for the price of a few
fits. This page shows the surface and the three ways of choosing from it.
"""

# %%
# Data
# ----
# Twelve inputs, outputs of 10 x 8 x 5, coefficients of ranks (4, 3, 2, 2), and noise of twice the
# size of the signal.

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
# The surface
# -----------
# The curves are the held-out error along the rank of each mode, the others as chosen, and the error
# along the penalty, with that of the mean and that of ridge regression as dotted lines; the maps
# are pairs of modes. Too small a rank costs much, too large a rank little: the error falls steeply
# up to the choice and rises slowly beyond it. A white line encloses what is within one standard
# error of the choice.

RankSurfaceDisplay.from_estimator(model, mode_names=modes)
plt.show()

# %%
# The spectra tell a similar story without held-out data: a few directions of each mode stand out,
# and the rest falls slowly, as noise does.

SpectrumDisplay.from_estimator(model, mode_names=modes)
plt.show()

# %%
# Three choices
# -------------
# ``"min"`` takes the least held-out error, ``"1se"`` the smallest model within one standard error
# of it, and ``"stack"``, the default, a mixture of several models. With the truth at hand we can
# judge them: by the error about the noiseless outputs, as a share of that of ridge regression,
# mean and range of three training sets of each size.

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
# All of them leave much less than ridge regression, and the more samples the less. With 25 samples
# the stack is ahead of the best single rank; later the two are level. The rule of one standard
# error pays a little for its small models: it is for reading, the stack is for predicting.
