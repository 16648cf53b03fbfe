"""Data to try the estimators on: synthetic tensors, pictures, monthly weather."""

from holrr.datasets._forecast import make_forecast_windows
from holrr.datasets._images import (
    image_from_coef,
    load_image,
    make_image_regression,
    make_images,
)
from holrr.datasets._met_office import fetch_met_office
from holrr.datasets._synthetic import make_tensor_regression

__all__ = [
    "fetch_met_office",
    "image_from_coef",
    "load_image",
    "make_forecast_windows",
    "make_image_regression",
    "make_images",
    "make_tensor_regression",
]
