"""
Trace norm regression and MLMT-NC compared with HOLRR
=====================================================

``HOLRR`` limits the ranks of the coefficients. Two other methods penalise them.
``TraceNormRegression`` penalises the sum of the trace norms of all unfoldings, which is convex.
``MLMTNC`` penalises the squared norms of core and factors. All have the same interface.
"""

# %%
# Data
# ----
# There are ten inputs and outputs of 8 x 8. The coefficients have the rank (3, 2, 3), the noise is
# as strong as the signal, and there are 60 training samples.

import matplotlib.pyplot as plt
import numpy as np

from holrr import HOLRRCV, MLMTNCCV, RLSCV, TraceNormRegression, TraceNormRegressionCV
from holrr.datasets import make_tensor_regression

X, Y, W = make_tensor_regression(
    1060, 10, (8, 8), rank=(3, 2, 3), snr=1.0, return_coef=True, random_state=0
)
X, Y, X_new, Y_new = X[:60], Y[:60], X[60:], Y[60:]

# %%
# Regularisation path of the trace norm
# -------------------------------------
# With increasing penalty, more singular values of each unfolding become zero. At ``penalty_max_``
# all are zero. With ``warm_start=True``, each fit starts from the previous solution. Each fit has a
# lower bound on the minimum and stops at a given duality gap.

model = TraceNormRegression(warm_start=True)
largest = model.fit(X, Y).penalty_max_
penalties = largest * np.logspace(0, -2, 25)
ranks, errors, gaps = [], [], []
for penalty in penalties:
    model.set_params(penalty=penalty).fit(X, Y)
    ranks.append(model.rank_)
    errors.append(np.linalg.norm(model.coef_ - W) / np.linalg.norm(W))
    gaps.append(model.objective_ / model.lower_bound_ - 1)
print(f"largest relative duality gap: {max(gaps):.0e}")

# %%
# Ranks and errors along the path
# -------------------------------
# The error of the coefficients is least near a tenth of the largest penalty, where no singular
# value is zero and all ranks are full. The fit has the true ranks (3, 2, 3) at a third of the
# largest penalty. There, the error is more than one and a half times as large, since the trace norm
# shrinks large singular values as much as small ones.

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
# Compare all methods
# -------------------
# Five-fold cross-validation chooses the hyperparameters of each method. ``MLMTNCCV`` uses the ranks
# with which HOLRR has the least held-out error, and chooses the penalty.

for search in (RLSCV(), TraceNormRegressionCV(), MLMTNCCV(), HOLRRCV()):
    search.fit(X, Y)
    error = np.linalg.norm(search.coef_ - W) / np.linalg.norm(W)
    name = type(search).__name__
    print(f"{name:>22}: error of the coefficients {error:.3f}, R2 {search.score(X_new, Y_new):.3f}")

# %%
# MLMT-NC and HOLRR have nearly the same error. The error of the trace norm is clearly lower than
# that of ridge regression, and clearly higher than that of MLMT-NC and HOLRR.
