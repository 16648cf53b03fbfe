"""The page on scaling shows what its file of measurements holds, and these keep what it says."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import scaling  # noqa: E402


@pytest.fixture(scope="module")
def rows():
    return scaling.read_csv(scaling.RESULTS)


def test_the_page_shows_the_slopes_of_the_file(rows):
    assert scaling.table(rows) in (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")


def test_the_slope_of_a_power_is_its_exponent():
    x = np.array([1.0, 2.0, 4.0, 8.0])
    assert scaling.slope(x, 3 * x**1.5) == pytest.approx(1.5)


def test_the_measured_growth_agrees_with_the_page(rows):
    found = {
        (what, axis): scaling.slope(*scaling.curve(rows, axis, "HOLRR", what))
        for what in ("seconds", "bytes")
        for axis in ("N", "D", "d0")
    }
    assert 0.8 < found["seconds", "N"] < 1.2
    assert 0.7 < found["seconds", "D"] < 1.4
    assert found["seconds", "d0"] < 3
    assert abs(found["bytes", "N"]) < 0.05
    assert found["bytes", "D"] < 1.2


def test_memory_of_a_fit_does_not_grow_with_the_samples():
    sizes = [(n, 4, (3, 3)) for n in (200_000, 400_000)]
    memory = [next(scaling.measure("N", *size, 1))["bytes"] for size in sizes]
    assert memory[1] < 1.1 * memory[0]


@pytest.mark.parametrize("name", ["scaling_time.png", "scaling_memory.png"])
def test_the_pictures_are_there_and_small(name):
    assert (ROOT / "docs" / "images" / name).stat().st_size < 150_000


def test_a_sweep_is_measured_and_drawn(tmp_path, rows):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    found = list(scaling.measure("N", 60, 3, (2, 2), 1))
    assert [row["method"] for row in found] == ["HOLRR", "RLS", "Ridge", "HOLRRCV"]
    assert all(row["seconds"] > 0 and row["bytes"] > 0 for row in found)
    scaling.draw(rows, "seconds", tmp_path / "time.png")
    assert (tmp_path / "time.png").stat().st_size > 10_000
