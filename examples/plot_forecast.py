"""
Time series forecast with prediction intervals
==============================================

The model forecasts the next four months of temperature and rain at six stations, from the last two
months and the time of the year. The folds of the search train only on months before the test
months, and the last twelve years test the coverage of the intervals.
"""

# %%
# Data
# ----
# The data are fifty simulated years: an annual cycle, an oscillation with a memory of some months
# that has different effects on the stations, and noise. ``make_forecast_windows`` divides the
# series into windows of past and future months, and ``calendar="harmonics"`` adds the time of the
# year to the inputs.

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from sklearn.model_selection import TimeSeriesSplit

from holrr import HOLRRCV
from holrr.datasets import make_forecast_windows
from holrr.metrics import interval_coverage
from holrr.plotting import IntervalCalibrationDisplay, SkillMapDisplay

rng = np.random.default_rng(0)
months = np.arange("1970-01", "2020-01", dtype="datetime64[M]")
stations = ["Bergen", "Cork", "Lerwick", "Leuchars", "Oxford", "Valley"]
state = np.zeros(len(months))
for t in range(1, len(months)):
    state[t] = 0.85 * state[t - 1] + rng.normal()
year = np.cos(2 * np.pi * (np.arange(len(months)) - 6.5) / 12)
course = np.multiply.outer(year, [[6.0, -0.8]] * 6)
felt = np.outer([1.0, 0.4, 0.8, 0.6, 0.5, 0.4], [0.8, 0.3])
series = course + np.multiply.outer(state, felt) + rng.normal(size=(len(months), 6, 2))
X, Y, first = make_forecast_windows(series, 2, 4, calendar="harmonics", months=months)

time = first.astype("datetime64[ns]")
X = xr.DataArray(X, coords={"time": time, "input": np.arange(X.shape[1])})
Y = xr.DataArray(
    Y,
    dims=("time", "lead", "station", "variable"),
    coords={"time": time, "lead": [1, 2, 3, 4], "station": stations},
).assign_coords(variable=["temperature", "rain"])
# sphinx_gallery_thumbnail_number = 2

# %%
# Fit with time series cross-validation
# -------------------------------------
past, future = {"time": slice("2007-08")}, {"time": slice("2008-01", None)}
model = HOLRRCV(cv=TimeSeriesSplit(6)).fit(X.sel(past), Y.sel(past))
score = model.score(X.sel(future), Y.sel(future))
print(f"best single ranks {model.best_params_['rank']}, R2 of the last twelve years {score:.2f}")

# %%
# Most of this R2 comes from the calendar. The skill relative to the mean of each month of the year
# shows the gain beyond it: there is some for temperature one month ahead, at the stations with the
# strongest oscillation, and little for later months, for rain and at other stations. Red cells mark
# outputs for which the mean of the month is better.

climatology = Y.sel(past).groupby("time.month").mean()
expected = climatology.sel(month=Y.sel(future).time.dt.month).to_numpy()
SkillMapDisplay.from_estimator(model, X.sel(future), Y.sel(future), reference=expected)
plt.show()

# %%
# Plot the forecast with its intervals
# ------------------------------------
# The plot shows the forecast of Bergen one month ahead. The nominal coverage is 90 percent. The
# observed coverage is slightly higher here, and 90 percent over all 48 outputs of a forecast.

low, high = model.predict_interval(X.sel(future), coverage=0.9)
at = {"lead": 1, "station": "Bergen", "variable": "temperature"}
seen = Y.sel(future).sel(at)
out = (seen < low.sel(at)) | (seen > high.sel(at))
fig, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
ax.fill_between(seen.time, low.sel(at), high.sel(at), alpha=0.3, label="90 percent interval")
ax.plot(seen.time, model.predict(X.sel(future)).sel(at), label="forecast")
ax.plot(seen.time[~out], seen[~out], "k.", markersize=4, label="observed, inside")
ax.plot(seen.time[out], seen[out], "rx", label="observed, outside")
ax.set_ylabel("temperature anomaly")
ax.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize="small")
coverage = interval_coverage(Y.sel(future), low, high)
print(f"inside: {1 - float(out.mean()):.1%} in Bergen, {coverage:.1%} of all")
plt.show()

# %%
# Calibration: nominal and observed coverage
# ------------------------------------------
# The plot shows the observed coverage against the nominal coverage, for intervals of each output
# and for simultaneous intervals of all 48 outputs of a forecast. The former are within one or two
# percentage points of the diagonal. The latter are up to ten points below it, since there are few
# windows that do not overlap, and only the largest error of each counts. The coverage is not
# guaranteed for time series, whose samples are not exchangeable.

fig, ax = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
for kind in ("entry", "simultaneous"):
    IntervalCalibrationDisplay.from_estimator(
        model, X.sel(future), Y.sel(future), kind=kind, name=kind, ax=ax
    )
plt.show()
