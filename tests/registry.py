"""Every estimator of the package, once: a row buys all the shared checks.

These are in test_common.py, test_arrays.py and test_bad_input.py.

To add an estimator, add a row. A test that takes the argument ``row`` runs for every row. Where a
shared check cannot hold, name the check and the reason in ``exempt``; scikit-learn's own checks go
into ``failing_checks`` in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sklearn.base import BaseEstimator, clone

from holrr import HOLRR, LRR, RLS


@dataclass(frozen=True)
class Row:
    """One estimator with parameters that suit outputs of every order."""

    estimator: BaseEstimator
    # Name of a shared check -> why it cannot hold.
    exempt: Mapping[str, str] = field(default_factory=dict)
    # Name of one of scikit-learn's checks -> why it is impossible.
    failing_checks: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return repr(self.estimator)

    def make(self, **params):
        """A fresh estimator."""
        return clone(self.estimator).set_params(**params)


ROWS = [
    Row(RLS()),
    Row(RLS(alpha=0, fit_intercept=False)),
    Row(LRR(rank=2, alpha=0.5)),
    Row(HOLRR(rank=2, alpha=0.5)),
    Row(HOLRR(rank=2, alpha=0.5, subspaces="response")),
    Row(HOLRR(rank=2, alpha=0.5, refine=True)),
]
