"""
Streams and files beyond memory
===============================

A linear fit needs the data only through their moments, whose size does not depend on the number of
samples. So a model can be brought up to date with every batch that arrives, and data on disk are
read once, in blocks, with the same answer.
"""

# %%
# A stream
# --------
# Batches of 20 samples arrive. ``partial_fit`` adds each to what the model knows, and after any of
# them it is the model of all samples so far. We follow its error on fresh data, beside that of
# ridge regression on the same stream.

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
# What to see: both errors fall as one over the root of the number of samples. HOLRR has 135
# parameters where ridge has 3000, and is at each moment about as good as ridge with seven times as
# many samples.

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, error in errors.items():
    ax.loglog(seen, error, label=name)
ax.set(xlabel="samples so far", ylabel="relative error on fresh data")
ax.legend()
plt.show()

# %%
# A file
# ------
# The same outputs in a file, opened as a memory map. It is fitted like an array; with a budget of
# one mebibyte it is read in blocks that keep to it. The stream, the file and the arrays in memory
# give the same coefficients.

path = Path(tempfile.mkdtemp()) / "Y.npy"
np.save(path, Y[:2000])
with memory_budget(2**20):
    on_disk = HOLRR(rank=3).fit(X[:2000], np.load(path, mmap_mode="r"))
in_memory = HOLRR(rank=3).fit(X[:2000], Y[:2000])
print(f"{path.stat().st_size / 2**20:.1f} MiB on disk")
for name, model in {"stream": models["HOLRR"], "file": on_disk}.items():
    print(f"{name}: largest difference {np.abs(model.coef_ - in_memory.coef_).max():.1e}")

# %%
# Two machines
# ------------
# Moments add up. Each machine sends its own, and the sum is that of all the data.

here, there = Moments.from_arrays(X[:800], Y[:800]), Moments.from_arrays(X[800:2000], Y[800:2000])
both = HOLRR(rank=3).fit_moments(here + there)
print(f"two machines: largest difference {np.abs(both.coef_ - in_memory.coef_).max():.1e}")
