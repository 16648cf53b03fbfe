"""Write the stored files of a release, with the version of the state in their names.

    python tests/io/stored/write.py

Files of older versions stay as they are. `test_files.py` loads all of them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import holrr

HERE, VERSION = Path(__file__).parent, 1


def main() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 3, 2)), rng.normal(size=(30, 2, 3))
    Y += X[:, :1, :1]
    x = xr.DataArray(
        X, dims=("time", "lat", "lon"), coords={"time": np.arange(30), "lat": [5.0, 10, 15]}
    )
    months = pd.to_datetime(["2001-01-31", "2001-02-28"])
    coords = {
        "time": np.arange(30),
        "month": months,
        "height": [pd.Timestamp("2000", tz="UTC")] * 3,
    }
    y = xr.DataArray(Y, dims=("time", "month", "height"), coords=coords)
    search = holrr.HOLRRCV(cv=3, output_weight=xr.DataArray([1.0, 2, 3], dims="height")).fit(x, y)
    search.save(HERE / f"search-{VERSION}.holrr")
    new = np.linspace(-1, 1, 24).reshape(4, 3, 2)
    np.save(HERE / f"search-{VERSION}.npy", np.asarray(search.predict(new)))

    pipeline = make_pipeline(StandardScaler(), holrr.HOLRR(rank=2)).fit(X.reshape(30, 6), Y)
    holrr.save(pipeline, HERE / f"pipeline-{VERSION}.holrr")
    np.save(HERE / f"pipeline-{VERSION}.npy", pipeline.predict(new.reshape(4, 6)))

    table = pd.DataFrame(X.reshape(30, 6)[:12, :3], columns=["a", "b", "ü"])
    holrr.Moments.from_arrays(table, Y[:12]).save(HERE / f"moments-{VERSION}.npz")


if __name__ == "__main__":
    main()
