"""
Predict pressure maps from sea surface temperature
==================================================

Inputs and outputs are fields over ``lat`` and ``lon`` on different grids, and the input field has
no values on land. ``fit`` takes both fields without preparation, and the patterns are maps.

.. code-block:: python

    sst, slp = xr.open_dataarray("sst.nc"), xr.open_dataarray("slp.nc")
    model = HOLRRCV().fit(sst[:200], slp[:200])
    forecast = model.predict(sst[200:])
    forecast.to_netcdf("forecast.nc")
"""

# %%
# Data
# ----
# The data are simulated: eighty winters of three months each. Two slow patterns of the sea surface
# temperature drive the pressure over the ocean in the north: a warm band along the equator, and a
# dipole further north. Both fields also have independent variability, and each cell has a
# measurement error. Cells on land are NaN in every month.

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

rng = np.random.default_rng(0)
time = xr.date_range("1940-12-01", periods=960, freq="MS")
time = time[time.month.isin([12, 1, 2])]
lat, lon = np.arange(-25.0, 50.1, 5.0), np.arange(120.0, 290.1, 7.5)
lat_slp, lon_slp = np.arange(20.0, 70.1, 5.0), np.arange(160.0, 260.1, 10.0)


def bump(y, x, y0, x0, height, width):
    """A smooth patch, of shape (y.size, x.size)."""
    return np.exp(-(((y[:, None] - y0) / height) ** 2) - ((x - x0) / width) ** 2)


def smooth_noise(y, x, n_patches=60):
    """Sums of random patches, a new one for each month."""
    places = rng.uniform((y[0], x[0]), (y[-1], x[-1]), size=(n_patches, 2))
    patches = np.stack([bump(y, x, a, b, 8, 15) for a, b in places])
    found = np.tensordot(rng.normal(size=(time.size, n_patches)), patches, 1)
    return found / found.std(axis=0)


index = rng.normal(size=(time.size, 2))
for t in range(1, time.size):  # each month depends on the month before
    index[t] = 0.7 * index[t - 1] + 0.7 * index[t]
sea_patterns = [
    bump(lat, lon, 0, 230, 9, 35),
    bump(lat, lon, 40, 175, 8, 25) - bump(lat, lon, 22, 200, 8, 25),
]
air_patterns = [
    bump(lat_slp, lon_slp, 48, 200, 12, 25) - 0.6 * bump(lat_slp, lon_slp, 60, 245, 10, 20),
    bump(lat_slp, lon_slp, 30, 190, 9, 25),
]
land = lon < 132 + 0.4 * np.abs(lat[:, None] - 10)  # a coast in the west
land |= lon > 282 - 1.1 * np.clip(lat[:, None] - 5, 0, None)  # and one in the east
warm = np.tensordot(index, sea_patterns, 1) + 0.5 * smooth_noise(lat, lon)
warm += 1.5 * rng.normal(size=warm.shape)
sst = xr.DataArray(
    np.where(land, np.nan, warm),
    {"time": time, "lat": lat, "lon": lon},
    name="sst",
)
slp = xr.DataArray(
    1013 + 3 * np.tensordot(index, air_patterns, 1) + 1.5 * smooth_noise(lat_slp, lon_slp),
    {"time": time, "lat": lat_slp, "lon": lon_slp},
    name="slp",
    attrs={"units": "hPa"},
)
print(f"{sst.sizes}, {land.mean():.0%} of it land, to {slp.sizes}")

# %%
# Skill against climatology
# -------------------------
# Neighbouring months are similar, so the test samples and the folds of each search are blocks of
# sixteen winters. The reference forecast, the climatology, is the mean of the training winters.
# Cells are weighted by their area, the cosine of the latitude: the weights of ``Standardizer``
# weight the penalty of the coefficients, ``output_weight`` the error.

from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from holrr import HOLRRCV, RLSCV
from holrr.data import Standardizer

area, area_slp = np.cos(np.deg2rad(sst.lat)), np.cos(np.deg2rad(slp.lat))
options = {
    "cv": KFold(5),
    "output_weight": [area_slp, None],
}
searches = {
    "ridge": RLSCV(input_rank=None, **options),
    "low rank in the outputs": HOLRRCV(input_rank=None, **options),
    "low rank on both sides": HOLRRCV(**options),
}
climatology, forecasts = [], {name: [] for name in searches}
for train, test in KFold(5).split(sst):
    climatology.append(slp[train].mean("time").expand_dims(time=slp.time[test]))
    for name, search in searches.items():
        model = make_pipeline(Standardizer(weight=area), search).fit(sst[train], slp[train])
        forecasts[name].append(model.predict(sst[test]))
missed = (xr.concat(climatology, "time") - slp) ** 2
skills = {}
for name, parts in forecasts.items():
    errors = (xr.concat(parts, "time") - slp) ** 2
    skills[name] = 1 - errors.mean("time") / missed.mean("time")
    total = errors.weighted(area_slp).mean() / missed.weighted(area_slp).mean()
    print(f"{name}: skill {1 - float(total):.3f}")

# %%
# Low ranks of the outputs improve on ridge regression, and low ranks of inputs and outputs
# improve further. In cells that the sea does not influence, the skill of ridge regression is
# below zero.

fig, axes = plt.subplots(1, 3, figsize=(9, 2.6), layout="constrained", sharey=True)
for ax, (name, skill) in zip(axes, skills.items(), strict=True):
    drawn = ax.pcolormesh(skill.lon, skill.lat, skill, cmap="RdBu_r", vmin=-0.6, vmax=0.6)
    ax.set_title(name, fontsize=10)
    ax.set_xlabel("longitude")
axes[0].set_ylabel("latitude")
fig.colorbar(drawn, ax=axes, label="skill")
plt.show()

# %%
# Patterns
# --------
# ``selection="1se"`` takes the smallest model within one standard error of the best one, which is
# easier to interpret. Land is grey.
# sphinx_gallery_thumbnail_number = 2

from holrr.plotting import LoadingsDisplay

search = HOLRRCV(selection="1se", **options)
model = make_pipeline(Standardizer(weight=area), search).fit(sst, slp)
print(f"input ranks {search.input_rank_}, ranks {search.rank_}")
figure = plt.figure(figsize=(7, 5.2), layout="constrained")
upper, lower = figure.subfigures(2)
above = LoadingsDisplay.from_estimator(model, mode=0, n_components=2, fig=upper)
LoadingsDisplay.from_estimator(model, mode=("lat", "lon"), n_components=2, fig=lower)
upper.suptitle("sea temperature")
lower.suptitle("pressure")
for ax in above.axes_.flat:
    ax.set_facecolor("0.8")
plt.show()

# %%
# The upper maps show the band and the dipole, the lower maps the pressure that they predict. Each
# pattern is a mixture of the two drivers: the model identifies the subspace that they span, and
# orders the directions in it by the variance of the pressure that they explain, as redundancy
# analysis does. Maximum covariance analysis orders them by covariance, so that a strong pattern
# of the sea can come first even if it predicts little.
#
# ``transform`` returns the time series of the patterns. ``to_dataset`` returns all other results
# as a Dataset. Dimensions that inputs and outputs share get the suffix ``_input``.

scores = model.transform(sst)
for k in range(2):
    fitted = scores.to_numpy() @ np.linalg.lstsq(scores, index[:, k], rcond=None)[0]
    print(
        f"driver {k + 1}: correlation {np.corrcoef(fitted, index[:, k])[0, 1]:.2f} with the scores"
    )
print(search.to_dataset().coef.dims)
