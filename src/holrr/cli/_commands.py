"""The commands, in the order in which ``holrr --help`` lists them."""

from __future__ import annotations

from ._command import Command
from ._demo import DEMO
from ._fit import FIT
from ._info import INFO
from ._plot import PLOT
from ._predict import PREDICT
from ._report import REPORT
from ._score import SCORE

__all__ = ["COMMANDS"]

COMMANDS: tuple[Command, ...] = (FIT, PREDICT, SCORE, INFO, REPORT, PLOT, DEMO)
