"""Reports: one HTML file about a fitted model, for readers without Python."""

from ._evaluate import Evaluation
from ._evaluate import evaluated as evaluated
from ._report import Report, make_report
from ._report import diagnosed as diagnosed
from ._report import report_on as report_on

__all__ = ["Evaluation", "Report", "make_report"]
