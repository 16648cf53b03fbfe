"""Simulated data with labels: the numbers of a seed, and what their documentation states."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from holrr.datasets import make_ocean_forecast, make_tissue_spectra

pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("xarray", reason="xarray is not installed")


def test_the_effect_of_the_ocean_decreases_with_the_lead_time():
    data = make_ocean_forecast(random_state=0)
    fields = data.sst.to_numpy().reshape(720, -1)
    amplitudes = np.linalg.svd(fields, full_matrices=False)[0][:, :3]
    effect = np.tensordot(amplitudes, data.temperature.to_numpy(), (0, 0))  # pattern, station, lead
    sizes = np.linalg.norm(effect, axis=(0, 1))
    assert (np.diff(sizes) < 0).all()
    # The numbers of a seed remain the same.
    assert_allclose(sizes, [94.3183, 71.2836, 57.9965, 47.6534, 38.4100, 31.5057], rtol=1e-4)


def test_animals_and_tissues_are_the_labels_of_the_spectra():
    markers, spectra = make_tissue_spectra(random_state=0)
    assert_array_equal(markers.index, spectra.index)
    assert markers.index.names == ["animal", "replicate"]
    assert markers.shape == (120, 12)
    assert spectra.shape == (120, 80)
    tissues = spectra.columns.get_level_values("tissue").unique()
    assert list(tissues) == ["liver", "lung", "skin", "kidney"]
    means = spectra.T.groupby(level="wavelength").mean().T
    for marker, wavelength in {"CRP": 460, "Fe": 600}.items():
        related = means.corrwith(markers[marker]).abs()
        assert abs(related.idxmax() - wavelength) <= 20
