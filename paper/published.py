"""Published numbers of the paper and of Bahadori, Yu and Liu (2014), for comparison.

References
----------
G. Rabusseau, H. Kadri (2016). Higher-order low-rank regression. arXiv:1602.06863.

M. T. Bahadori, R. Yu, Y. Liu (2014). Fast multivariate spatio-temporal analysis via low rank
tensor learning. Advances in Neural Information Processing Systems 27.
"""

from __future__ import annotations

__all__ = ["CITATION", "NIPS_2014", "TABLE_1", "TABLE_2"]

CITATION = "G. Rabusseau, H. Kadri (2016). Higher-order low-rank regression. arXiv:1602.06863."

# Table 1: seconds of a fit to 100 samples, by shape of the coefficients; None if not run.
TABLE_1: dict[tuple[int, ...], dict[str, float | None]] = {
    (10, 10, 10, 10): {
        "RLS": 0.012,
        "LRR": 0.45,
        "Trace norm": 12.92,
        "MLMT-NC": 945.79,
        "HOLRR": 0.04,
    },
    (3, 70, 70): {
        "RLS": 0.04,
        "LRR": 10.46,
        "Trace norm": None,
        "MLMT-NC": None,
        "HOLRR": 0.08,
    },
    (160, 5, 16, 5): {
        "RLS": 2.07,
        "LRR": 2.24,
        "Trace norm": 40.23,
        "MLMT-NC": None,
        "HOLRR": 1.67,
    },
}

_COLUMNS = ("Trace norm", "RLS", "LRR", "HOLRR")
_CELLS: dict[tuple[int, int], dict[str, tuple[float | None, ...]]] = {
    (1, 50): {
        "linear": (0.6323, 0.6481, 0.6261, 0.6310),
        "rbf": (None, 0.6081, 0.6076, 0.6035),
        "poly": (None, 0.6580, 0.6526, 0.6793),
    },
    (1, 100): {
        "linear": (0.5997, 0.6218, 0.6003, 0.6003),
        "rbf": (None, 0.5926, 0.5920, 0.5808),
        "poly": (None, 0.6230, 0.6160, 0.6222),
    },
    (3, 50): {
        "linear": (0.6367, 0.6683, 0.6256, 0.6163),
        "rbf": (None, 0.6297, 0.6296, 0.6096),
        "poly": (None, 0.6587, 0.6412, 0.6355),
    },
    (3, 100): {
        "linear": (0.6269, 0.6740, 0.6186, 0.6086),
        "rbf": (None, 0.6153, 0.6090, 0.6015),
        "poly": (None, 0.6588, 0.6439, 0.6379),
    },
    (5, 50): {
        "linear": (0.6302, 0.6719, 0.6232, 0.6127),
        "rbf": (None, 0.6150, 0.6192, 0.6017),
        "poly": (None, 0.6579, 0.6338, 0.6353),
    },
    (5, 100): {
        "linear": (0.6140, 0.6449, 0.6021, 0.5971),
        "rbf": (None, 0.6020, 0.5908, 0.5886),
        "poly": (None, 0.6432, 0.6202, 0.6107),
    },
}

# Table 2: root mean square error of the forecast, by (k, N), kernel and method.
TABLE_2: dict[tuple[int, int], dict[tuple[str, str], float]] = {
    cell: {
        (kernel, method): value
        for kernel, values in kernels.items()
        for method, value in zip(_COLUMNS, values, strict=True)
        if value is not None
    }
    for cell, kernels in _CELLS.items()
}

_METHODS = [
    "Tucker",
    "ADMM",
    "Forward",
    "Ortho",
    "OrthoNL",
    "Trace",
    "MTL l1",
    "MTL l21",
    "MTL dirty",
]

# Bahadori, Yu and Liu (2014), forecasts with 90 percent of the time for training: root mean squared
# error by data set and method, which the table calls NRMSE.
NIPS_2014: dict[str, dict[str, float]] = {
    data: dict(zip(_METHODS, errors, strict=True))
    for data, errors in {
        "CCDS": (0.9438, 0.8448, 0.8810, 0.8325, 0.8555, 0.8632, 0.9105, 0.9171, 1.0950),
        "USHCN": (0.8975, 0.9227, 0.9171, 0.9069, 0.9175, 0.9273, 0.9528, 0.9543, 0.9735),
        "Foursquare": (0.1492, 0.1407, 0.1241, 0.1223, 0.1234, 0.1245, 0.1495, 0.1495, 0.1504),
    }.items()
}
