"""
A map with holes: clouds, and a sea without stations
====================================================

Satellites see the ground where no cloud is, and some cells are never seen at all. With
``missing="ignore"`` the fit uses the observed cells only, and the predictions are complete maps.
"""

# %%
# Data
# ----
# Daily maps of soil moisture, 30 x 40 cells, driven by six measured quantities, for 120 days.
# Clouds hide two fifths of the land, another part each day, and the sea in the south-east has
# no soil.

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
# Fit around the holes
# --------------------
# Ridge regression does it, too, each cell from the days on which it was seen.

from holrr import HOLRRCV, RLSCV

model = HOLRRCV(missing="ignore").fit(drivers, maps)
ridge = RLSCV(missing="ignore").fit(drivers, maps)
print(f"best single ranks {model.best_params_['rank']}")
for name, found in {"HOLRR": model, "ridge": ridge}.items():
    error = (found.predict(drivers).to_numpy() - truth)[:, ~sea]
    print(f"{name}: RMSE {np.sqrt(np.mean(error**2)):.2f} about the truth, clouds included")

# %%
# What to see
# -----------
# White is what nobody saw. Ridge regression fills the clouds with a grainy map, since each cell
# knows only its own past; HOLRR, which knows that neighbours move together without being told who
# they are, leaves less than half of that error. Cells that were never seen stay empty: nothing is
# made up for the sea.

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
# The filled maps are one line. They keep what was observed and take the model elsewhere:

filled = maps.fillna(model.predict(drivers))
print(f"holes left on land: {int(np.isnan(filled.to_numpy()[:, ~sea]).sum())}")
