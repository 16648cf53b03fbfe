"""Saved models: the estimator in a file, the steps before it, and the columns that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sklearn.pipeline import Pipeline

from ..data import RangeSelector, SavitzkyGolay, Standardizer, StandardNormalVariate
from ..io import load
from ._errors import CommandError
from ._files import check_file
from ._tables import Plain, title

__all__ = ["SavedModel", "load_model"]

# Steps whose outputs have the same columns and names as their inputs.
_ONE_TO_ONE = (Standardizer, StandardNormalVariate, SavitzkyGolay)


@dataclass(frozen=True)
class SavedModel:
    """Content of a model file.

    Parameters
    ----------
    path : Path
        Path of the file.
    whole : estimator or Pipeline
        The saved object.
    notes : dict
        Notes of `holrr fit`: the number of samples and a fingerprint of the outputs.
    """

    path: Path
    whole: Any
    notes: dict[str, Any]

    @property
    def model(self) -> Any:
        """The fitted estimator, the last step of a pipeline."""
        return self.whole[-1] if isinstance(self.whole, Pipeline) else self.whole

    @property
    def steps(self) -> list[Any]:
        """The transformers before the estimator."""
        if not isinstance(self.whole, Pipeline):
            return []
        return [step for _, step in self.whole.steps[:-1] if not isinstance(step, str)]

    @cached_property
    def known(self) -> Any:
        """Names of the columns to read, and attributes of the estimator that reading needs."""
        found = {name: getattr(self.model, name, None) for name in ("labels_", "missing")}
        return SimpleNamespace(feature_names_in_=self._names(), **found)

    def _names(self) -> list[str]:
        """Return the names of the columns that a table must have; none without names in the fit."""
        for step in [*self.steps, self.model]:
            names = getattr(step, "feature_names_in_", None)
            if names is not None:
                # The columns that the first step does not select are not needed.
                selector = self._selector
                return list(names if step is not selector else selector.get_feature_names_out())
            if not isinstance(step, _ONE_TO_ONE):
                break
        return []

    @property
    def _selector(self) -> RangeSelector | None:
        """First step, if it selects columns by their coordinates."""
        first = next(iter(self.steps), None)
        return first if isinstance(first, RangeSelector) else None

    def preprocess(self, X: Any) -> Any:
        """Return the inputs after the steps of preprocessing.

        Parameters
        ----------
        X : array, table or object of xarray
            Inputs as they were read. Columns that were selected by name are not selected again.
        """
        names, steps = self.known.feature_names_in_, self.steps
        columns = getattr(X, "columns", None)
        if isinstance(X, Plain):  # its columns were checked, so only its array is used
            X = X.values
            for step in [*steps, self.model, getattr(self.model, "best_estimator_", self.model)]:
                vars(step).pop("feature_names_in_", None)
        if self._selector is not None and columns is not None:
            steps = steps[1:] if [title(c) for c in columns] == names else steps
        for step in steps:
            X = step.transform(X)
        return X


def load_model(path: Path, *, text: bool = False) -> SavedModel:
    """Load a fitted model, or a pipeline that ends with one.

    Parameters
    ----------
    path : Path
        Path of the file.
    text : bool
        Whether to allow a pipeline that was fitted to text, which commands cannot read.
    """
    check_file(path)
    whole = load(path)
    saved = SavedModel(path, whole, getattr(whole, "notes_", {}))
    if not hasattr(saved.model, "tucker_"):
        raise CommandError(f"{path} contains {type(saved.model).__name__}, not a fitted model")
    if not text and any(map(_takes_text, saved.steps)):
        raise CommandError(
            f"{path} contains a pipeline for text, and this command reads only numbers; use it in "
            f"Python: holrr.load({path.name!r}).predict(table)"
        )
    return saved


def _takes_text(step: Any) -> bool:
    """Return whether a fitted step, or a step inside it, was fitted to text."""
    parts: Any = getattr(step, "steps", None) or getattr(step, "transformers_", ())
    learned = [*getattr(step, "categories_", ()), getattr(step, "statistics_", ())]
    is_text = any(isinstance(v, str) for values in learned for v in values)
    return is_text or any(_takes_text(part[1]) for part in parts)
