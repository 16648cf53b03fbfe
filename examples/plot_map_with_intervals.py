"""
Predict maps with prediction intervals (xarray)
===============================================

The model predicts a map of temperature, 24 latitudes by 36 longitudes, from four climate indices.
Predictions have the names and coordinates of the data. The whole task:

.. code-block:: python

    import pandas as pd
    import xarray as xr
    from holrr import HOLRRCV

    indices = pd.read_csv("indices.csv", index_col="time", parse_dates=True)
    maps = xr.open_dataarray("maps.nc")
    model = HOLRRCV().fit(indices[:"2009"], maps.sel(time=slice("2009")))
    predicted = model.predict(indices["2010":])
    low, high = model.predict_interval(indices["2010":], coverage=0.9)

The rest of this example creates the files, and checks and plots the results.
"""

# %%
# Data
# ----
# The data are forty years of simulated monthly anomalies. Each index has the effect of a broad
# pattern of the map. The noise of the cells is independent, and twice as strong in the west as in
# the east.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr

rng = np.random.default_rng(0)
time = pd.date_range("1980-01", "2019-12", freq="MS", name="time")
columns = ["ENSO", "NAO", "PDO", "SAM"]
indices = pd.DataFrame(rng.normal(size=(len(time), 4)), index=time, columns=columns)
lat, lon = np.linspace(-60, 60, 24), np.linspace(0, 350, 36)
centres = [(0, 220, 25, 50), (50, 330, 15, 40), (35, 180, 15, 35), (-50, 100, 12, 90)]
patterns = np.stack(
    [
        np.exp(-(((lat[:, None] - a) / h) ** 2) - ((lon - b) / w) ** 2)
        - 0.5 * np.exp(-(((lat[:, None] + 5) / 20) ** 2) - ((lon - b + 90) / w) ** 2)
        for a, b, h, w in centres
    ]
)
noise = np.where(lon < 180, 0.8, 0.4) * rng.normal(size=(len(time), 24, 36))
maps = xr.DataArray(
    np.tensordot(indices.to_numpy(), patterns, 1) + noise,
    coords={"time": time, "lat": lat, "lon": lon},
    name="temperature",
    attrs={"units": "K"},
)
folder = Path(tempfile.mkdtemp())
indices.to_csv(folder / "indices.csv")
maps.to_netcdf(folder / "maps.nc")

# %%
# Fit, predict and compute intervals
# ----------------------------------
# Cross-validation chooses the penalty and the ranks of all three modes. The intervals of a cell are
# quantiles of the held-out residuals of this cell.

from holrr import HOLRRCV

indices = pd.read_csv(folder / "indices.csv", index_col="time", parse_dates=True)
maps = xr.open_dataarray(folder / "maps.nc")
model = HOLRRCV().fit(indices[:"2009"], maps.sel(time=slice("2009")))
predicted = model.predict(indices["2010":])
low, high = model.predict_interval(indices["2010":], coverage=0.9)

observed = maps.sel(time=slice("2010", None))
inside = (observed >= low) & (observed <= high)
score = model.score(indices["2010":], observed)
print(f"best single ranks {model.best_params_['rank']}, R2 {score:.2f}")
print(f"{float(inside.mean()):.3f} of the new observations lie in their 90 percent interval")

# %%
# Plot the prediction and the intervals
# -------------------------------------
# The maps show one month. The first map is the observation, and the second is the prediction, which
# has the patterns without the noise. The third map is the half width of the interval. It is twice
# as wide in the west, where the noise is twice as strong; the model estimates this from the data.
# In the fourth map, dots mark cells whose interval does not contain zero, so that the sign of a new
# observation is known.

month = int(np.abs(indices.loc["2010":, "ENSO"]).argmax())
panels = {
    "observed": (observed, "RdBu_r", -3, 3),
    "predicted": (predicted, "RdBu_r", -3, 3),
    "half width of the interval": ((high - low) / 2, "viridis", 0, 1.6),
    "cells with a known sign": (predicted, "RdBu_r", -3, 3),
}
fig, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained", sharex=True, sharey=True)
for ax, (title, (field, cmap, vmin, vmax)) in zip(axes.flat, panels.items(), strict=True):
    drawn = ax.pcolormesh(lon, lat, field[month], cmap=cmap, vmin=vmin, vmax=vmax)
    ax.set_title(title)
    fig.colorbar(drawn, ax=ax, label="K")
sure = ((low[month] > 0) | (high[month] < 0)).to_numpy()
axes[1, 1].plot(lon[np.nonzero(sure)[1]], lat[np.nonzero(sure)[0]], "k.", markersize=2)
axes[1, 0].set(xlabel="longitude", ylabel="latitude")
fig.suptitle(f"{pd.Timestamp(observed.time.values[month]):%B %Y}")
plt.show()
