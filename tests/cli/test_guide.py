"""The examples of the guide: they run, and say what the guide says."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from holrr.cli import main

pd = pytest.importorskip("pandas", reason="pandas is not installed")
xr = pytest.importorskip("xarray", reason="xarray is not installed")
pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")

PAGE = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")


def the_same(found, expected):
    """Lines with the same words, and numbers that differ in rounding only."""
    number = r"\d+\.\d+"
    assert re.sub(number, "#", found) == re.sub(number, "#", expected)
    pairs = ([float(n) for n in re.findall(number, text)] for text in (found, expected))
    np.testing.assert_allclose(*pairs, rtol=2e-3)


def test_the_guide_of_the_command_line_is_true(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (python,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(python, {})
    consoles = re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL)
    for command in re.findall(r"\$ holrr (.*?)(?=\n\$|\Z)", "\n".join(consoles), flags=re.DOTALL):
        words, _, expected = command.replace("\\\n", " ").partition("\n")
        assert main(shlex.split(words)) == 0, command
        said = capfd.readouterr()
        assert said.err == "", command
        if expected.strip():
            the_same(said.out.strip(), expected.strip())
    bounds = pd.read_csv("bounds.csv", index_col="run")
    names = ["purity", "colour"]
    assert list(bounds.columns) == [f"{n}{s}" for s in ("", "_lower", "_upper") for n in names]
    assert list(bounds.index) == list(range(60, 80))
    assert (bounds.purity_lower < bounds.purity).all()
    assert (bounds.purity < bounds.purity_upper).all()
    with xr.open_dataset("forecast.nc") as found, xr.open_dataset("climate.nc") as given:
        assert set(found.data_vars) == {"t2m", "std"}
        assert found.t2m.attrs == given.t2m.attrs
        for name in ("time", "lat", "lon"):
            xr.testing.assert_equal(found[name], given[name])
        assert (found["std"] > 0).all()
        assert found["std"].dims == given.t2m.dims


@pytest.mark.parametrize("command", ["fit", "predict", "score", "info", "report"])
def test_the_guide_names_all_options(command, capsys):
    assert main([command, "--help"]) == 0
    options = set(re.findall(r"(?<![\w-])--[a-z-]+", capsys.readouterr().out))
    assert options
    for option in options - {"--help", "--debug", "--output"}:
        assert f"`{option}" in PAGE, option
