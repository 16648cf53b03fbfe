"""Reports: one HTML file about a fitted model, for readers without Python."""

from ._evaluate import Evaluation
from ._report import Report, make_report

__all__ = ["Evaluation", "Report", "make_report"]
