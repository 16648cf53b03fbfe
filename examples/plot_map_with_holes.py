"""
Missing values in the outputs: fill maps with clouds
====================================================

Clouds hide a part of each satellite map, and some cells are never observed. With
``missing="ignore"`` the fit uses only the observed cells (NaN marks missing values), and the
predictions are complete maps.
"""

# %%
# Data
# ----
# The data are 120 simulated daily maps of soil moisture, with 30 x 40 cells, which depend on six
# measured inputs. Clouds hide two fifths of the land, a different part each day. The cells of the
# sea in the south-east have no soil and are always missing.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr

rng = np.random.default_rng(1)
day = pd.date_range("2024-05-01", periods=120, name="day")
lat, lon = np.linspace(40, 47, 30), np.linspace(0, 10, 40)
y, x = np.meshgrid(np.linspace(-1, 1, 30), np.linspace(-1, 1, 40), indexing="ij")
centres = [(-0.5, -0.6), (0.5, -0.2), (-0.3, 0.5), (0.6, 0.7)]
hills = np.stack([np.exp(-4 * (y - a) ** 2 - 3 * (x - b) ** 2) for a, b in centres])
names = ["rain", "rain before", "sun", "wind", "snow melt", "river"]
drivers = pd.DataFrame(rng.normal(size=(120, 6)), index=day, columns=names)
truth = np.tensordot(drivers.to_numpy() @ rng.normal(size=(6, 4)), hills, 1)
seen = truth + 0.7 * rng.normal(size=truth.shape)
for today in seen:
    for a, b in rng.uniform(-1, 1, size=(8, 2)):
        today[(y - a) ** 2 + (x - b) ** 2 < 0.1] = np.nan
sea = (x > 0.9 - 0.6 * np.cos(2 * y)) & (y < -0.2)
seen[:, sea] = np.nan
maps = xr.DataArray(seen, coords={"day": day, "lat": lat, "lon": lon}, name="moisture")
print(f"clouds hide {np.isnan(seen[:, ~sea]).mean():.0%} of the land")

# %%
# Fit with missing values
# -----------------------
# ``RLSCV`` (ridge regression) also supports missing values. It fits each cell to the days on which
# the cell was observed.

from holrr import HOLRRCV, RLSCV

model = HOLRRCV(missing="ignore").fit(drivers, maps)
ridge = RLSCV(missing="ignore").fit(drivers, maps)
print(f"best single ranks {model.best_params_['rank']}")
for name, found in {"HOLRR": model, "ridge": ridge}.items():
    error = (found.predict(drivers).to_numpy() - truth)[:, ~sea]
    print(f"{name}: RMSE {np.sqrt(np.mean(error**2)):.2f} about the truth, clouds included")

# %%
# Compare the predicted maps
# --------------------------
# Missing values are white. The map of ridge regression is noisy, since it fits each cell
# independently. HOLRR uses the correlation between cells and has less than half of the error.
# Predictions of cells that were never observed, such as the sea, are NaN.

today = 17
panels = {
    "the truth": np.where(sea, np.nan, truth[today]),
    "observed": maps[today],
    "ridge": ridge.predict(drivers)[today],
    "HOLRR": model.predict(drivers)[today],
}
fig, axes = plt.subplots(2, 2, figsize=(8, 6), layout="constrained", sharex=True, sharey=True)
for ax, (title, field) in zip(axes.flat, panels.items(), strict=True):
    drawn = ax.pcolormesh(lon, lat, field, cmap="BrBG", vmin=-4, vmax=4)
    ax.set_title(title)
axes[1, 0].set(xlabel="longitude", ylabel="latitude")
fig.colorbar(drawn, ax=axes, label="soil moisture, anomaly")
plt.show()

# %%
# One line fills the maps: it keeps the observed values, and replaces missing values by predictions
# (imputation).

filled = maps.fillna(model.predict(drivers))
print(f"missing values on land: {int(np.isnan(filled.to_numpy()[:, ~sea]).sum())}")
