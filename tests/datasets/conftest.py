"""The station files of the Met Office are not part of the repository: find them, or skip."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def meteo_dir():
    folder = Path(os.environ.get("HOLRR_METEO_DIR", REPOSITORY / ".." / "shared" / "meteo"))
    if not (folder / "oxforddata.txt").is_file():
        pytest.skip("no Met Office station files: set HOLRR_METEO_DIR to the folder that has them")
    return folder


@pytest.fixture
def station_text():
    """Text of a well-formed station file, of 1960 by default, with every value equal to `value`."""

    def make(title="Somewhere", value=1.0, n_months=12, tail=""):
        rows = "".join(
            f"   {1960 + i // 12}  {i % 12 + 1:2d}" + 5 * f"  {value:6.1f}" + "\n"
            for i in range(n_months)
        )
        return (
            f"{title}\n"
            "Location: 450900E 207200N, Lat 51.761 Lon -1.262, 63 metres amsl\n"
            "Estimated data is marked with a * after the value.\n"
            "   yyyy  mm   tmax    tmin      af    rain     sun\n"
            "              degC    degC    days      mm   hours\n"
            f"{rows}{tail}"
        )

    return make
