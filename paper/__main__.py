"""Command line of the experiments: ``python -m paper [NAME ...] [--quick | --full]``."""

from __future__ import annotations

import sys

from . import forecasts, images, meteo, runtime, synthetic
from .experiment import main

OF_THE_PAPER = {"synthetic": synthetic, "images": images, "runtime": runtime, "meteo": meteo}

if __name__ == "__main__":
    sys.exit(main({**OF_THE_PAPER, "forecasts": forecasts}, tuple(OF_THE_PAPER), sys.argv[1:]))
