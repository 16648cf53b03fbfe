"""Metrics for predictions of tensors (R2, RMSE, skill) and for prediction intervals.

`scorers` can be passed to tools of scikit-learn:

>>> from sklearn.model_selection import cross_validate
>>> from holrr import RLS
>>> from holrr.datasets import make_tensor_regression
>>> from holrr.metrics import scorers
>>> X, Y = make_tensor_regression(60, 3, (4, 2), rank=2, snr=9, random_state=0)
>>> sorted(cross_validate(RLS(), X, Y, cv=3, scoring=scorers))[2:]
['test_neg_rmse', 'test_r2_pooled', 'test_r2_uniform']
"""

from .coverage import calibration_error, interval_coverage, interval_width
from .maps import skill_map
from .scores import r2, rmse, scorers, skill

__all__ = ["calibration_error", "interval_coverage", "interval_width", "r2", "rmse", "scorers"]
__all__ += ["skill", "skill_map"]
