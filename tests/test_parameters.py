"""Which values a parameter may have is said by the class that has it, or by one of its bases."""

from __future__ import annotations

from numbers import Real

import pytest
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, InvalidParameterError

from holrr import RLS, RLSCV, KernelRLSCV
from problems import toy


class Trimmed:
    _parameter_constraints: dict = {"trim": [Interval(Real, 0, 1, closed="left")]}  # noqa: RUF012


class TrimmedRLS(RLS, Trimmed):
    """As a user may write it: the constraints of one base come with it, those of all are merged."""

    _parameter_constraints: dict = {  # noqa: RUF012
        **RLS._parameter_constraints,
        "alpha": [Interval(Real, 1, None, closed="left")],
    }

    def __init__(self, alpha=1.0, trim=0.0):
        super().__init__(alpha)
        self.trim = trim


class HeirOfTrimmed(TrimmedRLS):
    pass


@pytest.mark.parametrize("model", [RLSCV(), KernelRLSCV()])
def test_searches_without_ranks_have_nothing_to_stack(model):
    with pytest.raises(InvalidParameterError, match="'selection'"):
        model.set_params(selection="stack").fit(*toy())


@pytest.mark.parametrize("cls", [TrimmedRLS, HeirOfTrimmed])
@pytest.mark.parametrize("bad", [{"alpha": 0.5}, {"trim": 1.0}])
def test_what_a_class_says_goes_before_what_its_bases_say(cls, bad):
    X, Y = toy()
    model = clone(cls()).fit(X, Y)
    with pytest.raises(
        InvalidParameterError, match=f"'{next(iter(bad))}' parameter of {cls.__name__}"
    ):
        model.set_params(**bad).fit(X, Y)
    RLS(0.5).fit(X, Y)  # knows nothing of its heirs
