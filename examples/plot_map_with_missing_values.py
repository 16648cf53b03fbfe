"""
Missing values in maps: clouds and sea
======================================

Satellites do not observe the ground below clouds, and some cells are never observed. With
``missing="ignore"`` the model is fitted to the observed cells, and the predictions are complete
maps.
"""

# %%
# Data
# ----
# The data are simulated: 120 daily maps of soil moisture with 30 x 40 cells, which depend on six
# measured quantities. Clouds hide two fifths of the land, a different part each day. The sea in
# the south-east is never observed.

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
# Fit to the observed cells
# -------------------------
# Ridge regression also accepts missing values. It fits each cell to the days on which it was
# observed.

from holrr import HOLRRCV, RLSCV

model = HOLRRCV(missing="ignore").fit(drivers, maps)
ridge = RLSCV(missing="ignore").fit(drivers, maps)
print(f"best single ranks {model.best_params_['rank']}")
for name, found in {"HOLRR": model, "ridge": ridge}.items():
    error = (found.predict(drivers).to_numpy() - truth)[:, ~sea]
    print(f"{name}: RMSE {np.sqrt(np.mean(error**2)):.2f} about the truth, clouds included")

# %%
# Predicted maps
# --------------
# Missing cells are white. The map of ridge regression is noisy, since each cell is fitted
# separately. The error of HOLRR is less than half as large, since it finds that neighbouring
# cells vary together. Cells that are never observed stay empty.

today = 17
panels = {
    "truth": np.where(sea, np.nan, truth[today]),
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
# Imputation takes one line. The result keeps the observed values and has predictions elsewhere.

filled = maps.fillna(model.predict(drivers))
print(f"missing cells left on land: {int(np.isnan(filled.to_numpy()[:, ~sea]).sum())}")
