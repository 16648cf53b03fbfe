"""
Penalties instead of ranks: the trace norm and MLMT-NC
======================================================

``HOLRR`` bounds the ranks. Two other methods penalise them: the sum of the trace norms of all
unfoldings, which is convex, and the squared norms of core and factors (MLMT-NC). They have the
same interface, so that a comparison is a loop.
"""

# %%
# Data
# ----
# Ten inputs, outputs of 8 x 8, coefficients of rank (3, 2, 3), as much noise as signal; 60 samples
# to learn from.

import matplotlib.pyplot as plt
import numpy as np

from holrr import HOLRRCV, MLMTNCCV, RLSCV, TraceNormRegression, TraceNormRegressionCV
from holrr.datasets import make_tensor_regression

X, Y, W = make_tensor_regression(
    1060, 10, (8, 8), rank=(3, 2, 3), snr=1.0, return_coef=True, random_state=0
)
X, Y, X_new, Y_new = X[:60], Y[:60], X[60:], Y[60:]

# %%
# The path of the trace norm
# --------------------------
# As the penalty grows, singular values of each unfolding are set to zero one after the other, and
# at ``penalty_max_`` all of them are. ``warm_start`` goes on from the fit before. Each fit stops
# at a certified distance from the minimum.

model = TraceNormRegression(warm_start=True)
largest = model.fit(X, Y).penalty_max_
penalties = largest * np.logspace(0, -2, 25)
ranks, errors, gaps = [], [], []
for penalty in penalties:
    model.set_params(penalty=penalty).fit(X, Y)
    ranks.append(model.rank_)
    errors.append(np.linalg.norm(model.coef_ - W) / np.linalg.norm(W))
    gaps.append(model.objective_ / model.lower_bound_ - 1)
print(f"largest certified distance from the minimum: {max(gaps):.0e}")

# %%
# What to see
# -----------
# Where the error of the coefficients is least, near a tenth of the largest penalty, no singular
# value is zero yet: all ranks are full. The true ranks (3, 2, 3) appear at a third of it, and by
# then the error is more than one and a half times as large, since what is large is shrunk as much
# as what is small.

fig, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(6, 6), layout="constrained")
for mode, name in enumerate(["input", "first output mode", "second output mode"]):
    top.step(penalties / largest, [r[mode] for r in ranks], where="mid", label=name)
top.set(ylabel="rank", xscale="log")
top.legend()
bottom.plot(penalties / largest, errors)
bottom.plot(penalties[np.argmin(errors)] / largest, min(errors), "ko")
bottom.set(xlabel="penalty, as a share of the largest", ylabel="error of the coefficients")
plt.show()

# %%
# All methods, each with its own search
# -------------------------------------
# Five folds each. ``MLMTNCCV`` takes the ranks that HOLRR predicts held-out data best with and
# looks for the penalty.

for search in (RLSCV(), TraceNormRegressionCV(), MLMTNCCV(), HOLRRCV()):
    search.fit(X, Y)
    error = np.linalg.norm(search.coef_ - W) / np.linalg.norm(W)
    name = type(search).__name__
    print(f"{name:>22}: error of the coefficients {error:.3f}, R2 {search.score(X_new, Y_new):.3f}")

# %%
# MLMT-NC and HOLRR are level. The trace norm is well ahead of ridge regression and well behind the
# two.
