"""
Spectra in a CSV file: choose the ranks and read the factors
============================================================

Sixty mixtures of six ingredients, each measured by three instruments at 120 wavelengths. One row
of a file is one mixture, and the spectra have a header of two rows, instrument and wavelength. The
whole task, from the files to the picture of the factors:

.. code-block:: python

    import pandas as pd
    from holrr import HOLRRCV
    from holrr.plotting import LoadingsDisplay

    recipe = pd.read_csv("recipe.csv", index_col=0)
    spectra = pd.read_csv("spectra.csv", index_col=0, header=[0, 1])
    spectra.columns = spectra.columns.set_levels(spectra.columns.levels[1].astype(float), level=1)
    model = HOLRRCV(selection="1se").fit(recipe, spectra)
    LoadingsDisplay.from_estimator(model)

Headers are text in a CSV file; the sixth of these lines makes numbers of the wavelengths, so that
they are drawn as a line.
"""

# %%
# The files
# ---------
# Two of the ingredients absorb light, each in its own bands. A third scatters it, which lifts the
# short wavelengths. The other three do nothing. The instruments answer each of them with a gain of
# their own, and their baselines tilt from mixture to mixture, as those of real instruments do.

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
# From the files to the ranks
# ---------------------------
# Each level of the header is a mode of the output tensor. ``selection="1se"`` takes the smallest
# model within one standard error of the best, which is the one to read.

from holrr import HOLRRCV
from holrr.plotting import LoadingsDisplay, RankSurfaceDisplay

recipe = pd.read_csv(folder / "recipe.csv", index_col=0)
spectra = pd.read_csv(folder / "spectra.csv", index_col=0, header=[0, 1])
spectra.columns = spectra.columns.set_levels(spectra.columns.levels[1].astype(float), level=1)
model = HOLRRCV(selection="1se").fit(recipe, spectra)
print(f"ranks {model.rank_} of {model.coef_.shape}, penalty {model.alpha_:.2g}")

# %%
# Three directions of the ingredients, two of the instruments, three of the wavelengths. The curves
# of the held-out error fall up to there and are flat beyond, and ridge regression, the dotted line
# beside the penalty, is a little worse.

RankSurfaceDisplay.from_estimator(model)
plt.show()

# %%
# The factors
# -----------
# From above: which ingredients make each score, which instruments answer, and at which
# wavelengths. The first is fat, whose scattering lifts the short wavelengths (the signs of both
# bars and line are turned: only their product counts). The second is sugar with its band at 1350
# nm, the third caffeine with its bands at 1150 and 1450 nm. Since the parts of a mixture add up to
# one, more of the one is less of the others, hence the small bars of opposite sign. Nearly all of
# the energy is common to the three instruments; what is left, 3.5 percent, tells B from the
# others.

LoadingsDisplay.from_estimator(model)
plt.show()

# %%
# Compare with PLS
# ----------------
# Partial least squares, the usual tool for spectra, sees a flat row of 360 numbers. Both searches
# choose their size by five folds within each of five outer folds, whose errors are these. PLS may
# keep up to all six directions of the inputs, ``HOLRRCV`` mixes all ranks.

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
# Most of that is noise, tilt included, which nothing can predict. Of what lies above it, in mean
# squares, HOLRR has about half as much as PLS.

print(f" noise: RMSE {np.sqrt(np.mean((values - 1 - signal) ** 2)):.4f}")
