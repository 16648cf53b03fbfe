"""
Spectra from a CSV file: ranks, factors and a comparison with PLS
=================================================================

Three instruments measure sixty mixtures of six ingredients at 120 wavelengths. Each row of a file
is one mixture, and the spectra have a header of two rows, instrument and wavelength. The whole
task, from the files to the plot of the factors:

.. code-block:: python

    import pandas as pd
    from holrr import HOLRRCV
    from holrr.plotting import LoadingsDisplay

    recipe = pd.read_csv("recipe.csv", index_col=0)
    spectra = pd.read_csv("spectra.csv", index_col=0, header=[0, 1])
    spectra.columns = spectra.columns.set_levels(spectra.columns.levels[1].astype(float), level=1)
    model = HOLRRCV(selection="1se").fit(recipe, spectra)
    LoadingsDisplay.from_estimator(model)

Headers of a CSV file are text. The sixth line converts the wavelengths to numbers, so that they are
plotted as a line.
"""

# %%
# Data
# ----
# The data are simulated. Two ingredients absorb light, each in its own bands. A third scatters
# light, which increases the short wavelengths. The other three have no effect. Each instrument has
# its own gain for each ingredient, and its baseline tilts differently for each mixture, as in real
# instruments.

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
# Read the files and choose the ranks
# -----------------------------------
# Each level of the header is a mode of the output tensor. ``selection="1se"`` chooses the smallest
# model within one standard error of the best, which is the easiest to interpret.

from holrr import HOLRRCV
from holrr.plotting import LoadingsDisplay, RankSurfaceDisplay

recipe = pd.read_csv(folder / "recipe.csv", index_col=0)
spectra = pd.read_csv(folder / "spectra.csv", index_col=0, header=[0, 1])
spectra.columns = spectra.columns.set_levels(spectra.columns.levels[1].astype(float), level=1)
model = HOLRRCV(selection="1se").fit(recipe, spectra)
print(f"ranks {model.rank_} of {model.coef_.shape}, penalty {model.alpha_:.2g}")

# %%
# The model has three directions of the ingredients, two of the instruments and three of the
# wavelengths. The held-out error decreases up to these ranks and is flat beyond. Ridge regression,
# the dotted line in the plot of the penalty, is slightly worse.

RankSurfaceDisplay.from_estimator(model)
plt.show()

# %%
# Interpret the factors
# ---------------------
# The rows show the loadings of the ingredients, of the instruments and of the wavelengths. The
# first direction is fat, whose scattering increases the short wavelengths (only the product of the
# signs of bars and line matters). The second is sugar with its band at 1350 nm, and the third is
# caffeine with its bands at 1150 and 1450 nm. The shares of a mixture add up to one, which causes
# the small bars of opposite sign. Nearly all of the energy is common to the three instruments. The
# remaining 3.5 percent distinguish instrument B from the others.

LoadingsDisplay.from_estimator(model)
plt.show()

# %%
# Compare with PLS
# ----------------
# Partial least squares (PLS), the usual method for spectra, uses the outputs as a flat row of 360
# numbers. The errors are those of five outer folds. Within each, five inner folds choose the number
# of components of PLS, up to all six directions of the inputs, and the stack of ``HOLRRCV``.

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
# Most of the error is noise, including the tilt, which no method can predict. Above the noise, the
# mean squared error of HOLRR is about half of that of PLS.

print(f" noise: RMSE {np.sqrt(np.mean((values - 1 - signal) ** 2)):.4f}")
