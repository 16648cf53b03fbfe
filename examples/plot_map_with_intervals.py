"""
Predict a map from climate indices, with prediction intervals
=============================================================

Four climate indices predict a temperature map of 24 latitudes by 36 longitudes. Labels and
coordinates of the inputs and outputs are kept. The complete code, starting from files:

.. code-block:: python

    import pandas as pd
    import xarray as xr
    from holrr import HOLRRCV

    indices = pd.read_csv("indices.csv", index_col="time", parse_dates=True)
    maps = xr.open_dataarray("maps.nc")
    model = HOLRRCV().fit(indices[:"2009"], maps.sel(time=slice("2009")))
    predicted = model.predict(indices["2010":])
    low, high = model.predict_interval(indices["2010":], coverage=0.9)

The rest of this example writes the files and shows the results.
"""

# %%
# Data
# ----
# ``make_climate_maps`` simulates forty years of monthly anomalies. Each index has a broad pattern
# on the map. The noise of each cell is independent, and twice as strong at longitudes below 180
# degrees.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr

from holrr.datasets import make_climate_maps

indices, maps = make_climate_maps(labelled=True, random_state=0)
folder = Path(tempfile.mkdtemp())
indices.to_csv(folder / "indices.csv")
maps.to_netcdf(folder / "maps.nc")

# %%
# Fit and predict
# ---------------
# ``HOLRRCV`` chooses the penalty and the ranks of all three modes by cross-validation. The
# intervals are quantiles of the held-out residuals of the search, for each cell separately.

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
# Maps
# ----
# The figure shows an observed month and its prediction, the half width of the interval, and the
# cells whose interval does not contain zero (dots). The intervals are twice as wide where the
# noise is twice as strong.

month = int(np.abs(indices.loc["2010":, "ENSO"]).argmax())
panels = {
    "observed": (observed, "RdBu_r", -4, 4),
    "predicted": (predicted, "RdBu_r", -4, 4),
    "half width of the 90 % interval": ((high - low) / 2, "viridis", 0, 1.6),
    "predicted; dots: interval excludes 0": (predicted, "RdBu_r", -4, 4),
}
fig, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained", sharex=True, sharey=True)
for ax, (title, (field, cmap, vmin, vmax)) in zip(axes.flat, panels.items(), strict=True):
    drawn = ax.pcolormesh(maps.lon, maps.lat, field[month], cmap=cmap, vmin=vmin, vmax=vmax)
    ax.set_title(title)
    fig.colorbar(drawn, ax=ax, label="temperature, K")
sure = ((low[month] > 0) | (high[month] < 0)).to_numpy()
rows, columns = np.nonzero(sure)
axes[1, 1].plot(maps.lon[columns], maps.lat[rows], "k.", markersize=2)
axes[1, 0].set(xlabel="longitude, °E", ylabel="latitude, °N")
fig.suptitle(f"{pd.Timestamp(observed.time.values[month]):%B %Y}")
plt.show()
