"""
Calibration from excitation-emission matrices: tensor inputs
============================================================

A fluorescence spectrometer measures the intensity over emission and excitation wavelengths. The
concentrations of three analytes are predicted, while an interferent overlaps with all of their
bands. The matrix of a substance is the product of two spectra, so the inputs have low rank along
both modes.
"""

# %%
# Data
# ----
# The data are simulated: 45 calibration samples of 60 x 25 intensities. The bands of the
# interferent lie between those of the analytes. Its concentration is up to twice as high, and
# unknown.

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

rng = np.random.default_rng(0)
emission, excitation = np.linspace(300, 500, 60), np.linspace(220, 320, 25)
analytes = ["A", "B", "C"]


def spectra(nm, peaks, width):
    """Bands of the four substances, of shape (nm.size, 4)."""
    return np.exp(-0.5 * ((nm[:, None] - peaks) / width) ** 2)


emitted = spectra(emission, np.array([360, 390, 420, 400]), 24)
absorbed = spectra(excitation, np.array([255, 270, 275, 260]), 15)


def measure(n, noise):
    """Landscapes of n mixtures, and the concentrations of their analytes."""
    amount = rng.uniform(size=(n, 4)) * [1, 1, 1, 2]
    values = np.einsum("nk,ik,jk->nij", amount, emitted, absorbed)
    values += noise * rng.normal(size=values.shape)
    sample = np.arange(n)
    landscape = xr.DataArray(
        values, {"sample": sample, "emission": emission, "excitation": excitation}
    )
    return landscape, xr.DataArray(amount[:, :3], {"sample": sample, "analyte": analytes})


X, y = measure(45, noise=0.2)
X_test, y_test = measure(200, noise=0.2)

# %%
# Compare with ridge, PLS and CP-PLS
# ----------------------------------
# Ridge regression and PLS use 1500 flat columns. TensorLy's ``CP_PLSR`` (multilinear PLS) and
# ``RLSCV`` use the two modes. All settings are chosen by the same five folds.

from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import KFold
from tensorly.regression import CP_PLSR

from holrr import RLSCV

folds = list(KFold(5).split(X))


def cross_validated(make, X, y):
    """The model whose number of components has the least error on the folds."""
    errors = []
    for k in range(1, 7):
        found = [
            make(k).fit(X[train], y[train]).predict(X[test]) - y[test] for train, test in folds
        ]
        errors.append(np.mean(np.concatenate(found) ** 2))
    return make(1 + int(np.argmin(errors))).fit(X, y)


def pls(k):
    return PLSRegression(k, scale=False, tol=1e-4)


def flat(A):
    return A.to_numpy().reshape(len(A), -1)


model = RLSCV(cv=folds).fit(X, y)
found = {
    "ridge, flat": RLSCV(cv=folds).fit(flat(X), y).predict(flat(X_test)),
    "PLS, flat": cross_validated(pls, flat(X), y.to_numpy()).predict(flat(X_test)),
    "CP_PLSR": cross_validated(CP_PLSR, X.to_numpy(), y.to_numpy()).predict(X_test.to_numpy()),
    "RLSCV, tensor": model.predict(X_test),
}
for name, predicted in found.items():
    print(f"{name:>13}: RMSE {np.sqrt(np.mean((predicted - y_test.to_numpy()) ** 2)):.3f}")

# %%
# The methods that use the modes have less than half of the error. ``benchmarks/structured.py``
# repeats the comparison for four levels of noise and twenty seeds, and for concentrations over
# time, where ``HOLRRCV`` applies.

fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained", sharex=True, sharey=True)
for k, ax in enumerate(axes):
    ax.plot([0, 1], [0, 1], color="0.6", lw=1)
    for name, color in (("PLS, flat", "#d1600e"), ("RLSCV, tensor", "#1f5a99")):
        ax.plot(y_test[:, k], np.asarray(found[name])[:, k], ".", color=color, ms=4, label=name)
    ax.set(title=f"analyte {analytes[k]}", xlabel="concentration", aspect="equal")
axes[0].set_ylabel("predicted")
axes[0].legend(fontsize=8, frameon=False)
plt.show()

# %%
# Coefficients
# ------------
# The search keeps a few directions of each mode. The coefficients of an analyte are positive at
# its own band, and negative at the bands of the interferent (x) and of other analytes.

print(f"input ranks {model.input_rank_} of {X.shape[1:]}")
coef = model.to_dataset().coef
ridge = RLSCV(cv=folds, input_rank=None).fit(X, y).to_dataset().coef
fig, axes = plt.subplots(2, 3, figsize=(9, 5), layout="constrained", sharex=True, sharey=True)
for row, (name, values) in zip(axes, {"ridge": ridge, "tensor": coef}.items(), strict=True):
    top = float(abs(values).max())
    for ax, analyte in zip(row, analytes, strict=True):
        own = values.sel(analyte=analyte)
        drawn = ax.pcolormesh(excitation, emission, own, cmap="RdBu_r", vmin=-top, vmax=top)
        ax.set_title(f"{name}, analyte {analyte}", fontsize=10)
    for k, mark in enumerate("ABCx"):  # x is the interferent
        for ax in row:
            ax.text(
                *[
                    nm[np.argmax(S[:, k])]
                    for nm, S in ((excitation, absorbed), (emission, emitted))
                ],
                mark,
            )
    row[0].set_ylabel("emission, nm")
    fig.colorbar(drawn, ax=list(row))
for ax in axes[1]:
    ax.set_xlabel("excitation, nm")
plt.show()

# %%
# The interferent must be present in the calibration samples. None of these methods corrects for a
# substance that appears in new samples only.
