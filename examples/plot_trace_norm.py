"""
Trace norm and MLMT-NC: penalties instead of rank bounds
========================================================

``HOLRR`` bounds the ranks. Two other methods penalise them: the sum of the trace norms of all
unfoldings, which is convex, and the squared norms of core and factors (MLMT-NC).
"""

# %%
# Data
# ----
# The data have ten inputs, outputs of 8 x 8 and coefficients of rank (3, 2, 3). The noise is as
# strong as the signal. The training set has 60 samples.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from holrr import HOLRRCV, MLMTNC, RLSCV, TraceNormRegression, trace_norm_path
from holrr.datasets import make_tensor_regression

X, Y, W = make_tensor_regression(
    1060, 10, (8, 8), rank=(3, 2, 3), snr=1.0, return_coef=True, random_state=0
)
X, Y, X_new, Y_new = X[:60], Y[:60], X[60:], Y[60:]

# %%
# Regularization path of the trace norm
# -------------------------------------
# With a growing penalty the singular values of the unfoldings become zero one after the other. At
# ``penalty_max_`` all of them are zero. ``trace_norm_path`` starts each fit at the previous one.
# Each fit has a certified distance from the minimum.

largest = TraceNormRegression().fit(X, Y).penalty_max_
penalties = largest * np.logspace(0, -2, 25)
models = trace_norm_path(X, Y, penalties)
ranks = [model.rank_ for model in models]
errors = [np.linalg.norm(model.coef_ - W) / np.linalg.norm(W) for model in models]
gaps = [model.objective_ / model.lower_bound_ - 1 for model in models]
print(f"largest certified distance from the minimum: {max(gaps):.0e}")

# %%
# Ranks and errors
# ----------------
# The error of the coefficients is least near a tenth of the largest penalty, where all ranks are
# full. The true ranks (3, 2, 3) appear at a third of the largest penalty. The error is more than
# one and a half times as large there, since large singular values are shrunk as much as small
# ones.

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
# Comparison of the searches
# --------------------------
# All searches use five folds. ``GridSearchCV`` chooses the penalties of the trace norm and of
# MLMT-NC. MLMT-NC has the ranks with the least held-out error of HOLRR.

ridge, holrr = RLSCV().fit(X, Y), HOLRRCV().fit(X, Y)
rank = HOLRRCV(selection="min").fit(X, Y).rank_
trace_norm = GridSearchCV(TraceNormRegression(), {"penalty": penalties}).fit(X, Y)
mlmtnc = GridSearchCV(MLMTNC(rank), {"beta": np.logspace(-2, 2, 9)}).fit(X, Y)
found = {
    "ridge regression": ridge,
    "trace norm": trace_norm.best_estimator_,
    "MLMT-NC": mlmtnc.best_estimator_,
    "HOLRR": holrr,
}
for name, search in found.items():
    error = np.linalg.norm(search.coef_ - W) / np.linalg.norm(W)
    print(f"{name:>16}: error of the coefficients {error:.3f}, R2 {search.score(X_new, Y_new):.3f}")

# %%
# MLMT-NC and HOLRR have similar errors. The error of the trace norm lies between theirs and that
# of ridge regression.
