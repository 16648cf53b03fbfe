"""Datasets: synthetic tensors, images, climate maps, spectra and monthly weather."""

from ._forecast import make_forecast_windows
from ._images import image_from_coef, load_image, make_image_regression, make_images
from ._labelled import make_ocean_forecast, make_tissue_spectra
from ._maps import make_climate_maps
from ._met_office import fetch_met_office
from ._synthetic import make_tensor_regression

__all__ = ["fetch_met_office", "image_from_coef", "load_image", "make_climate_maps"]
__all__ += ["make_forecast_windows", "make_image_regression", "make_images"]
__all__ += ["make_ocean_forecast", "make_tensor_regression", "make_tissue_spectra"]
