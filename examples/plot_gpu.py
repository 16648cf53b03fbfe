"""
Fit models on a GPU with PyTorch
================================

Estimators accept arrays of PyTorch, CuPy and other libraries that follow the array API standard.
The fit runs on the device of the arrays, and predictions are in the same library and on the same
device. No setting is needed. This example uses a CUDA device if PyTorch finds one, and the CPU
otherwise.
"""

# %%
# Select the device
# -----------------
# PyTorch is optional. Without it, this example uses NumPy.

import time

import matplotlib.pyplot as plt
import numpy as np

try:
    import torch
except ImportError:
    torch = None
device = "cuda" if torch is not None and torch.cuda.is_available() else "cpu"
print("torch on " + device if torch is not None else "torch is not installed: NumPy is used")

# %%
# Data
# ----
# There are 4000 samples, 40 inputs and outputs of 30 x 20. Compared with code for NumPy, only
# ``to_device`` is new.

from holrr import HOLRR, HOLRRCV, KernelHOLRR
from holrr.datasets import make_tensor_regression

X, Y = make_tensor_regression(4000, 40, (30, 20), rank=(4, 4, 3), snr=1.0, random_state=0)


def to_device(A):
    return A if torch is None else torch.asarray(A, device=device)


def to_numpy(A):
    return A if isinstance(A, np.ndarray) else A.cpu().numpy()


# %%
# Fit with NumPy and PyTorch
# --------------------------
# The models are a linear fit, a search over all ranks and penalties, and a kernel fit to 1000
# samples. Each is fitted with NumPy and with PyTorch.

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
        model.fit(A, B)  # warm-up
        start = time.perf_counter()
        predictions.append(to_numpy(model.fit(A, B).predict(A)))
        times.append(time.perf_counter() - start)
    difference = np.abs(predictions[0] - predictions[1]).max() / np.abs(predictions[0]).max()
    print(f"{name}: rank {model.rank_}, relative difference of the predictions {difference:.0e}")

# %%
# Compare times
# -------------
# The predictions agree to nearly all digits of float64 on any device. The bars are the times of fit
# and prediction on the machine that built this page. On a CPU, both libraries call a similar BLAS
# and take similar times. A GPU is faster for large outputs and many samples; the page on benchmarks
# has measured times.

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for k, (name, times) in enumerate(seconds.items()):
    ax.barh(np.arange(3) + 0.4 * k, times, 0.38, label=name)
ax.set_yticks(np.arange(3) + 0.2, models)
ax.invert_yaxis()
ax.set_xlabel("seconds")
ax.legend()
plt.show()
