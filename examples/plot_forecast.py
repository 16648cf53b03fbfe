"""
Forecast with prediction intervals, and their calibration
=========================================================

Monthly temperature and rain at six stations are predicted four months ahead from the last two
months and the time of the year. The last twelve years are kept for the test of the intervals.
"""

# %%
# Data
# ----
# The data are simulated: fifty years with an annual cycle, an oscillation that lasts some months
# and affects the stations differently, and noise. ``make_forecast_windows`` cuts the series into
# past and future months, and ``calendar="harmonics"`` adds the time of the year to the inputs.

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from sklearn.model_selection import TimeSeriesSplit

from holrr import HOLRRCV
from holrr.datasets import make_forecast_windows
from holrr.metrics import interval_coverage, skill_map

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
# Fit to the past
# ---------------
# ``TimeSeriesSplit`` makes folds whose training samples come before their test samples.

past, future = {"time": slice("2007-08")}, {"time": slice("2008-01", None)}
model = HOLRRCV(cv=TimeSeriesSplit(6)).fit(X.sel(past), Y.sel(past))
score = model.score(X.sel(future), Y.sel(future))
print(f"best single ranks {model.best_params_['rank']}, R2 of the last twelve years {score:.2f}")

# %%
# Most of this R2 comes from the annual cycle. The skill against the mean of each month of the
# year removes it: the model predicts temperature one month ahead at the stations that the
# oscillation affects most, and little else. Below zero, the mean of the month is the better
# forecast.

climatology = Y.sel(past).groupby("time.month").mean()
expected = climatology.sel(month=Y.sel(future).time.dt.month).to_numpy()
skill = skill_map(model, X.sel(future), Y.sel(future), expected)
skill.plot.line(x="lead", hue="station", col="variable", xticks=skill.lead)
plt.show()

# %%
# Forecast and intervals
# ----------------------
# The figure shows the temperature in Bergen one month ahead. The 90 percent band contains a few
# more observations than it should; over all 48 outputs it contains 90 percent.

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
# Calibration
# -----------
# The figure compares the nominal with the observed coverage, for intervals of each output
# (``"entry"``) and for bands that should contain all 48 outputs at once (``"simultaneous"``). The
# former are within two percentage points of the diagonal. The latter are up to five points below
# it, since few windows do not overlap and only the largest error of each window counts. The
# coverage is not guaranteed for samples that depend on each other.

fig, ax = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
ax.plot([0, 1], [0, 1], "--", color="grey")
nominal = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
for kind, average in {"entry": "pooled", "simultaneous": "samples"}.items():
    ends = [model.predict_interval(X.sel(future), coverage=c, kind=kind) for c in nominal]
    observed = [interval_coverage(Y.sel(future), *pair, average=average) for pair in ends]
    ax.plot(nominal, observed, "o-", label=kind)
ax.set(xlabel="nominal coverage", ylabel="observed coverage")
ax.legend()
plt.show()
