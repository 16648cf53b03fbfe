"""
Spectra in a CSV file: choose the ranks and interpret the factors
=================================================================

Sixty mixtures of six ingredients are measured by three instruments at 120 wavelengths. A row of
the file is a mixture, and the header has two rows: instrument and wavelength. The complete code:

.. code-block:: python

    import pandas as pd
    from holrr import HOLRRCV
    from holrr.plotting import LoadingsDisplay

    recipe = pd.read_csv("recipe.csv", index_col=0)
    spectra = pd.read_csv("spectra.csv", index_col=0, header=[0, 1])
    spectra.columns = spectra.columns.set_levels(spectra.columns.levels[1].astype(float), level=1)
    model = HOLRRCV(selection="1se").fit(recipe, spectra)
    LoadingsDisplay.from_estimator(model)

The header of a CSV file is text. The sixth line converts the wavelengths to numbers, so that they
are drawn as a line.
"""

# %%
# Data
# ----
# The data are simulated. Two ingredients absorb light in different bands. A third one scatters
# light, mainly at short wavelengths. The other three have no effect. The instruments have
# different gains, and their baselines have a different slope for each mixture.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.default_rng(1)
names = ["caffeine", "sugar", "fat", "water", "salt", "starch"]
recipe = pd.DataFrame(rng.dirichlet(np.ones(6), size=60), columns=names).rename_axis("mixture")
nm = np.linspace(900, 1700, 120)
bands = np.stack(
    [
        np.exp(-(((nm - 1150) / 40) ** 2)) + 0.5 * np.exp(-(((nm - 1450) / 60) ** 2)),
        np.exp(-(((nm - 1350) / 50) ** 2)),
        (900 / nm) ** 4,
    ]
)
gains = np.array([[1.0, 0.8, 0.6], [1.0, 0.5, 0.9], [1.0, 1.2, 0.7]])
signal = np.einsum("nk,ki,kw->niw", recipe[["caffeine", "sugar", "fat"]], gains, bands)
tilt = rng.normal(size=(60, 3, 1)) * np.linspace(-1, 1, 120)
values = 1 + signal + 0.05 * tilt + 0.05 * rng.normal(size=signal.shape)
header = pd.MultiIndex.from_product([["A", "B", "C"], nm.round(1)], names=["instrument", "nm"])
folder = Path(tempfile.mkdtemp())
recipe.to_csv(folder / "recipe.csv")
pd.DataFrame(values.reshape(60, -1), recipe.index, header).to_csv(folder / "spectra.csv")
# sphinx_gallery_thumbnail_number = 2

# %%
# Choose the ranks
# ----------------
# Each level of the header is a mode of the output tensor. ``selection="1se"`` takes the smallest
# model within one standard error of the best one, which is easier to interpret.

from holrr import HOLRRCV
from holrr.plotting import LoadingsDisplay, RankSurfaceDisplay

recipe = pd.read_csv(folder / "recipe.csv", index_col=0)
spectra = pd.read_csv(folder / "spectra.csv", index_col=0, header=[0, 1])
spectra.columns = spectra.columns.set_levels(spectra.columns.levels[1].astype(float), level=1)
model = HOLRRCV(selection="1se").fit(recipe, spectra)
print(f"ranks {model.rank_} of {model.coef_.shape}, penalty {model.alpha_:.2g}")

# %%
# The model has three directions of the ingredients, two of the instruments and three of the
# wavelengths. The held-out error falls up to these ranks and is flat beyond them. The error of
# ridge regression, the dotted line in the panel of the penalty, is slightly larger.

RankSurfaceDisplay.from_estimator(model)
plt.show()

# %%
# Interpret the factors
# ---------------------
# The rows show the loadings of the ingredients, the instruments and the wavelengths. The first
# column is fat, which scatters short wavelengths (two signs are reversed; only their product has
# a meaning). The second is sugar with its band at 1350 nm, the third caffeine with its bands at
# 1150 and 1450 nm. The parts of a mixture add up to one, so that the other ingredients have small
# loadings of the opposite sign. Nearly all of the energy is common to the three instruments; the
# remaining 3.5 percent separate B from the others.

LoadingsDisplay.from_estimator(model)
plt.show()

# %%
# Compare with PLS
# ----------------
# Partial least squares (PLS), a common method for spectra, treats the 360 outputs as a flat row.
# Both searches choose their settings by five inner folds, and the errors are those of five outer
# folds. PLS chooses up to six components, and ``HOLRRCV`` mixes models of several ranks.

from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

folds = KFold(5, shuffle=True, random_state=0)
searches = {
    "PLS": GridSearchCV(PLSRegression(), {"n_components": range(1, 7)}, cv=5),
    "HOLRR": HOLRRCV(output_shape=(3, 120)),
}
for name, search in searches.items():
    mse = -cross_val_score(
        search, recipe, spectra.to_numpy(), cv=folds, scoring="neg_mean_squared_error"
    )
    print(f"{name:>6}: RMSE {np.sqrt(mse.mean()):.4f}")

# %%
# Most of the error is noise and baselines, which cannot be predicted. The part above this level,
# in mean squares, is about half as large for HOLRR as for PLS.

print(f" noise: RMSE {np.sqrt(np.mean((values - 1 - signal) ** 2)):.4f}")
