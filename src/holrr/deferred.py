"""Fits that are put off: a batch adds to the moments, and is solved when the fit is asked for."""

from __future__ import annotations

import threading
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from sklearn.base import _fit_context

from .core.caution import warn
from .data.moments import Moments
from .data.samples import Samples, ingest
from .data.source import Source
from .guard import all_or_nothing

__all__ = ["Deferred"]

# Fitted attributes that the data alone decide on: there before any problem is solved.
_KNOWN_AT_ONCE = ("n_features_in_", "feature_names_in_", "labels_")


class _Later:
    """A fit that nobody has asked for yet: the estimator as it was when the data came."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state, self.lock = state, threading.RLock()


class Deferred:
    """An estimator whose fit can wait for the first look at it.

    A look is any fitted attribute (their names end in an underscore), and all that is made of
    them: predictions, scores, copies, files. The fit is that of the parameters which held when it
    was put off. It is made on a copy of the estimator and put in its place whole, by one thread
    while others wait; where it raises, every look raises the same, and more batches may follow.
    """

    _fitted_later: _Later

    def _forget(self) -> None:
        """Drop what an earlier fit has left: a refit has no other attributes than a first fit."""
        for name in [n for n in vars(self) if n.endswith("_") or n.startswith("_fitted")]:
            if name not in _KNOWN_AT_ONCE:
                delattr(self, name)

    def __sklearn_is_fitted__(self) -> bool:
        """Asked without a walk through the attributes, to which another thread may add now."""
        return "_fitted_later" in vars(self) or "tucker_" in vars(self)  # in this order

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Add a batch of samples to those seen so far and fit the model to all of them.

        The data are kept as moments, whose size does not depend on the number of samples. A batch
        only adds to them: the problem is solved when something of the fit is asked for (a
        prediction, an attribute, a copy), which is where an error of the solver is raised. After
        `fit`, which keeps no moments, it starts anew and says so in a warning.

        Kernel estimators need landmarks for it: those given, or drawn from the first batch.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples, d1, ..., dp)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from holrr import RLS
        >>> model = RLS().partial_fit(np.eye(4), np.ones((4, 3, 2)))
        >>> model.partial_fit(-np.eye(4), np.zeros((4, 3, 2))).moments_.n_samples
        8
        """
        seen: Moments | None = vars(self).get("moments_")
        if seen is None and hasattr(self, "tucker_"):
            warn(
                "partial_fit starts anew: fit keeps no moments of its data to go on from. To add "
                "batches to earlier data, start with partial_fit or fit_moments."
            )
        data = ingest(self, X, y, sample_weight, reset=seen is None)
        if seen is not None and data.output_shape != seen.output_shape:
            raise ValueError(
                f"y of this batch has outputs of shape {data.output_shape}; the batches before had "
                f"{seen.output_shape}."
            )
        return self._add_batch(data, seen)

    @abstractmethod
    def _add_batch(self, data: Samples | Source, seen: Moments | None) -> Any:
        """Add a batch to the moments of those before; the fit to them all is put off."""

    @abstractmethod
    def _solve_later(self) -> Any:
        """Make the fit that was put off."""

    def _put_off(self, known: dict[str, Any]) -> Any:
        """Forget the fit before; `known` are attributes of the new one that need no solution."""
        self._forget()
        vars(self).update(known)
        self._fitted_later = _Later(dict(vars(self)))
        return self

    def _settle(self) -> None:
        """Make the fit that was put off, if there is one."""
        later: _Later | None = vars(self).get("_fitted_later")
        if later is None:
            return
        with later.lock:
            is_left = vars(self).get("_fitted_later") is later  # no other thread has been here
            if is_left:
                self._replace_state(later)

    def _replace_state(self, later: _Later) -> None:
        model = object.__new__(type(self))
        vars(model).update(later.state)
        try:
            model._solve_later()
        except AttributeError as error:  # `hasattr` would take it for an answer
            raise RuntimeError(f"the fit to the batches so far has failed: {error}") from error
        state, found = vars(self), vars(model)
        params = type(self)._get_param_names()  # type: ignore[attr-defined]
        state.update({name: v for name, v in found.items() if name not in params})
        for name in [*(later.state.keys() - found.keys()), "_fitted_later"]:  # the mark goes last
            state.pop(name, None)

    if not TYPE_CHECKING:  # or every attribute would seem to be there

        def __getattr__(self, name: str) -> Any:
            """What is not there may be a part of a fit that was put off."""
            is_fitted = name.endswith("_") and not name.startswith("_")
            if (is_fitted or name.startswith("_fitted")) and name not in _KNOWN_AT_ONCE:
                self._settle()
            # Again, for the value or for the message: that of a property is its own.
            return object.__getattribute__(self, name)

        def __getstate__(self) -> Any:
            """What copies and files are made of: a fit, none that is still to come."""
            self._settle()
            return super().__getstate__()
