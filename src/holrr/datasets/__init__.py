"""Datasets: synthetic tensor regression problems, images, and monthly weather data."""

from ._forecast import make_forecast_windows
from ._images import image_from_coef, load_image, make_image_regression, make_images
from ._met_office import fetch_met_office
from ._synthetic import make_tensor_regression

__all__ = ["fetch_met_office", "image_from_coef", "load_image", "make_forecast_windows"]
__all__ += ["make_image_regression", "make_images", "make_tensor_regression"]
