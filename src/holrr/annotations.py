"""Types of the parameters of estimators, for editors and type checkers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Blocks", "CrossValidation", "InputRank", "InputShape", "Kernel", "MaxRank"]
__all__ += ["OutputWeight", "Own", "RandomState", "Rank", "Selection", "SimpleSelection"]


class Splitter(Protocol):
    """Splitter of scikit-learn."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterable[Any]:
        """Yield training and test indices."""

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits."""


CrossValidation: TypeAlias = int | Splitter | Iterable[tuple[ArrayLike, ArrayLike]] | None
Rank: TypeAlias = int | float | Sequence[int | float | None] | None
MaxRank: TypeAlias = int | Sequence[int | None] | None
InputRank: TypeAlias = int | Sequence[int | None] | Mapping[str, Any] | str | None
InputShape: TypeAlias = Sequence[int] | Mapping[str, Sequence[int]] | None
Choose: TypeAlias = Callable[[Mapping[str, Any]], Any]
Selection: TypeAlias = Literal["auto", "stack", "min", "1se"] | Choose
SimpleSelection: TypeAlias = Literal["min", "1se"] | Choose
OutputWeight: TypeAlias = ArrayLike | Sequence[ArrayLike | None] | None
Blocks: TypeAlias = str | Mapping[str, Any] | ArrayLike | None
Own: TypeAlias = str | Sequence[Any] | ArrayLike | None
Kernel: TypeAlias = str | Callable[..., float]
RandomState: TypeAlias = int | np.random.RandomState | None
