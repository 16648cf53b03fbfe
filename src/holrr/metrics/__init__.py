"""How good predictions of tensors are: R2, RMSE and skill, over all outputs or for each of them."""

from ._scorers import scorers
from ._scores import r2, rmse, skill

__all__ = ["r2", "rmse", "scorers", "skill"]
