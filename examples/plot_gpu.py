"""
The same code on a GPU
======================

Arrays of torch, CuPy and others that follow the array API standard are fitted where they are, and
predictions come back in the same library and on the same device. Nothing has to be switched on.
This page uses a CUDA device if torch finds one, and otherwise the CPU, where the same lines run.
"""

# %%
# Which device
# ------------
# torch is optional. Without it this page goes on with NumPy, and says so.

import time

import matplotlib.pyplot as plt
import numpy as np

try:
    import torch
except ImportError:
    torch = None
device = "cuda" if torch is not None and torch.cuda.is_available() else "cpu"
print("torch on " + device if torch is not None else "torch is not installed: NumPy throughout")

# %%
# Data
# ----
# 4000 samples, 40 inputs, outputs of 30 x 20. ``to_device`` is all that is new in the code.

from holrr import HOLRR, HOLRRCV, KernelHOLRR
from holrr.datasets import make_tensor_regression

X, Y = make_tensor_regression(4000, 40, (30, 20), rank=(4, 4, 3), snr=1.0, random_state=0)


def to_device(A):
    return A if torch is None else torch.asarray(A, device=device)


def to_numpy(A):
    return A if isinstance(A, np.ndarray) else A.cpu().numpy()


# %%
# Fit in both libraries
# ---------------------
# A linear fit, a search over all ranks and penalties, and a kernel fit of 1000 samples, first with
# NumPy, then with torch.

models = {
    "HOLRR": (HOLRR(rank=4), 4000),
    "HOLRRCV": (HOLRRCV(max_rank=8, cv=3), 4000),
    "KernelHOLRR": (KernelHOLRR(rank=4, alpha=1.0, kernel="rbf"), 1000),
}
seconds = {"NumPy": [], f"torch, {device}" if torch is not None else "NumPy again": []}
for name, (model, n) in models.items():
    predictions = []
    for times, move in zip(seconds.values(), (np.asarray, to_device), strict=True):
        A, B = move(X[:n]), move(Y[:n])
        model.fit(A, B)  # once to warm up
        start = time.perf_counter()
        predictions.append(to_numpy(model.fit(A, B).predict(A)))
        times.append(time.perf_counter() - start)
    difference = np.abs(predictions[0] - predictions[1]).max() / np.abs(predictions[0]).max()
    print(f"{name}: rank {model.rank_}, relative difference of the predictions {difference:.0e}")

# %%
# What to see
# -----------
# The predictions agree to about as many digits as float64 has, on whatever device. The bars are
# the times of fit and prediction on the machine that built this page. On a CPU they are of the
# same order, since both libraries call the same kind of BLAS; a GPU pays for large outputs and
# many samples. What it brings there was measured on the page of benchmarks.

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for k, (name, times) in enumerate(seconds.items()):
    ax.barh(np.arange(3) + 0.4 * k, times, 0.38, label=name)
ax.set_yticks(np.arange(3) + 0.2, models)
ax.invert_yaxis()
ax.set_xlabel("seconds")
ax.legend()
plt.show()
