"""
Streams and files: fit data that do not fit into memory
=======================================================

A linear fit needs only the moments of the data, whose size does not depend on the number of
samples. A model can be updated with every batch, and data on disk are read in blocks, with the
same result.
"""

# %%
# Fit a stream of batches
# -----------------------
# Batches of 20 samples arrive. After each call of ``partial_fit`` the model is the fit to all
# samples so far. The figure shows its error on new samples, and that of ridge regression.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from holrr import HOLRR, RLS, Moments
from holrr.datasets import make_tensor_regression
from holrr.streaming import memory_budget

X, Y, W = make_tensor_regression(
    3000, 10, (20, 15), rank=(3, 3, 3), snr=0.5, return_coef=True, random_state=0
)
truth = np.tensordot(X[2000:], W, 1)
models = {"ridge": RLS(), "HOLRR": HOLRR(rank=3)}
seen, errors = np.arange(20, 2001, 20), {name: [] for name in models}
for n in seen:
    for name, model in models.items():
        model.partial_fit(X[n - 20 : n], Y[n - 20 : n])
        error = model.predict(X[2000:]) - truth
        errors[name].append(np.linalg.norm(error) / np.linalg.norm(truth))

# %%
# Both errors are proportional to one over the square root of the number of samples. HOLRR has 135
# parameters and ridge regression has 3000. Ridge regression needs about seven times as many
# samples for the same error.

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, error in errors.items():
    ax.loglog(seen, error, label=name)
ax.set(xlabel="samples so far", ylabel="relative error on new samples")
ax.legend()
plt.show()

# %%
# Fit a file
# ----------
# The same outputs are in a file, which is opened as a memory map and passed like an array. With a
# memory budget of one mebibyte it is read in small blocks. The stream, the file and the arrays in
# memory give the same coefficients.

path = Path(tempfile.mkdtemp()) / "Y.npy"
np.save(path, Y[:2000])
with memory_budget(2**20):
    on_disk = HOLRR(rank=3).fit(X[:2000], np.load(path, mmap_mode="r"))
in_memory = HOLRR(rank=3).fit(X[:2000], Y[:2000])
print(f"{path.stat().st_size / 2**20:.1f} MiB on disk")
for name, model in {"stream": models["HOLRR"], "file": on_disk}.items():
    print(f"{name}: largest difference {np.abs(model.coef_ - in_memory.coef_).max():.1e}")

# %%
# Add the moments of two machines
# -------------------------------
# Each machine computes the moments of its own data. The sum of both is the moments of all data.

here, there = Moments.from_arrays(X[:800], Y[:800]), Moments.from_arrays(X[800:2000], Y[800:2000])
both = HOLRR(rank=3).fit_moments(here + there)
print(f"two machines: largest difference {np.abs(both.coef_ - in_memory.coef_).max():.1e}")
