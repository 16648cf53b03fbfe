"""
Interpret the factors: electricity load of a power grid
=======================================================

Weather and calendar of a day predict the electricity load of five regions at 24 hours. The
factors and coefficients of the model show the effect of each input by region and hour.
"""

# %%
# Data
# ----
# The data are simulated for two years. Cold raises the load in the morning and in the evening,
# most in the north. Heat raises it in the afternoon in the south. Weekends lower it in the
# morning. Wind has no effect. The inputs are standardised, so that their loadings can be
# compared.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr

rng = np.random.default_rng(0)
day = pd.date_range("2022-01-01", "2023-12-31", name="day")
season = np.cos(2 * np.pi * (day.day_of_year - 20) / 365)
temperature = 10 - 10 * season + 4 * rng.normal(size=len(day))
inputs = pd.DataFrame(
    {
        "cold": np.maximum(15 - temperature, 0),
        "heat": np.maximum(temperature - 20, 0),
        "weekend": (day.day_of_week >= 5).astype(float),
        "wind": rng.gamma(3, 2, size=len(day)),
    },
    index=day,
)
inputs = (inputs - inputs.mean()) / inputs.std()
hour, regions = np.arange(24), ["north", "coast", "centre", "hills", "south"]


def bump(at, width):
    return np.exp(-(((hour - at + 12) % 24 - 12) ** 2) / (2 * width**2))


where = np.array([[1.0, 0.6, 0.5, 0.7, 0.2], [0.0, 0.2, 0.4, 0.1, 1.0], [0.5, 0.5, 0.8, 0.3, 0.5]])
when = np.stack([bump(7, 2) + 1.2 * bump(19, 3), bump(15, 3), -bump(8, 2.5)])
effect = np.einsum("nk,kr,kh->nrh", inputs[["cold", "heat", "weekend"]], where, when)
load = xr.DataArray(
    10 + 2 * bump(18, 6) + effect + rng.normal(size=effect.shape),
    coords={"day": day, "region": regions, "hour": hour},
    name="load",
    attrs={"units": "GW"},
)
# sphinx_gallery_thumbnail_number = 2

# %%
# Loadings
# --------
# The first component is cold: it acts in all regions, most in the north, at 7 and at 19 o'clock.
# The second is mostly heat, in the south around 15 o'clock. The signs multiply: minus for heat,
# plus for the south and minus for the hour give a higher load. The third is mostly the weekend.

from holrr import HOLRRCV
from holrr.plotting import LoadingsDisplay

model = HOLRRCV(selection="1se").fit(inputs, load)
print(f"ranks {model.rank_}, R2 {model.score(inputs, load):.2f}")
LoadingsDisplay.from_estimator(model)
plt.show()

# %%
# Each component mixes several inputs, since directions are orthogonal and ordered by energy,
# which the true effects are not. The coefficients do not depend on this convention. Their norm
# for each input is:

importances = pd.Series(model.feature_importances_, index=inputs.columns)
print(importances.round(2).to_string())

# %%
# Coefficients with standard errors
# ---------------------------------
# Each panel shows the coefficients of one input. Coefficients that do not differ from zero, at a
# false discovery rate of five percent over all coefficients, are left out. The standard errors
# come from a jackknife that leaves out one tenth of the days at a time. The curves show the two
# peaks of cold, the afternoon of heat in the south, and the lower load on weekend mornings. No
# coefficient of wind differs from zero.

from holrr import standard_errors

errors = standard_errors(model, inputs, load, n_groups=10, stability=False)
coef = errors.to_dataset().coef
marked = coef.where(coef.copy(data=errors.coef.significant()))
marked.plot.line(".-", x="hour", col="feature", col_wrap=2, figsize=(10, 6))
plt.show()
