"""Save and load estimators and moments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator

from .._version import __version__
from ..core.moments import CentredMoments
from ..core.tensor import Tucker
from ._container import VERSION, read_container, write_container
from ._encode import Decoder, Encoder
from ._sklearn import SKLEARN_VERSION

__all__ = ["load", "load_moments", "load_with_notes", "save"]

# What a file may be of; other values have a form only as a part of one of these.
_KINDS = (BaseEstimator, CentredMoments, Tucker)


def save(
    value: Any, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None
) -> None:
    """Save an estimator, fitted or not, a pipeline, moments or a Tucker tensor to a file.

    The other steps of a pipeline may be transformers of this library, or those of scikit-learn that
    docs/file_format.md lists: `StandardScaler`, `OneHotEncoder`, `ColumnTransformer` and others.

    The file holds no code and is written atomically: a crash at any moment leaves the old file or
    the new one. Symbolic links are followed and permissions kept. Arrays on a device, or of
    another library than NumPy, are saved as NumPy arrays.

    Parameters
    ----------
    value : estimator of this library, Pipeline, Moments or Tucker
    path : str or path
        Written as it is; no suffix is added.
    notes : dict of JSON values, optional
        Kept in the header.

    Raises
    ------
    TypeError
        Where a parameter, an attribute or a step of a pipeline, say a function as kernel, has no
        safe form; the message names it.
    ValueError
        Where attributes are not what they must be, so that the file could not be loaded.
    OSError
        Where the file cannot be written, or is a device or a pipe.

    Examples
    --------
    >>> from holrr import HOLRR
    >>> from holrr.io import load_with_notes, save
    >>> save(HOLRR(rank=2), "model.holrr", notes={"by": "Ada"})
    >>> load_with_notes("model.holrr")
    (HOLRR(rank=2), {'by': 'Ada'})
    """
    if not isinstance(value, _KINDS):
        raise TypeError(
            f"save takes an estimator of this library, Moments or a Tucker tensor; got an object "
            f"of {type(value).__module__}.{type(value).__qualname__}."
        )
    encoder, name = Encoder(), type(value).__name__
    tree = encoder.encode(value, name)
    try:  # what is written can be read
        Decoder(encoder.arrays, VERSION).decode(tree)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be saved, since no file may hold it: {error}") from error
    header = {
        "holrr": __version__,
        "sklearn": SKLEARN_VERSION,
        "object": tree,
        "notes": dict(notes or {}),
    }
    write_container(path, header, encoder.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Load what `save` wrote: an estimator, a pipeline, moments or a Tucker tensor.

    Only classes of this library, and those of scikit-learn that docs/file_format.md lists, are
    built, and every byte is checked against a checksum first. Arrays come back as NumPy arrays.
    Where a pipeline was saved with another minor version of scikit-learn, there is a warning.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator, Pipeline, Moments or Tucker

    Raises
    ------
    ValueError
        Where the file is foreign, damaged, cut off, or written by a newer holrr, and where a field
        of what it holds has another type or shape than it must have.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr import HOLRR, load
    >>> X, Y = np.arange(12.0).reshape(6, 2), np.ones((6, 3, 2))
    >>> model = HOLRR(rank=1).fit(X, Y)
    >>> model.save("model.holrr")
    >>> again = load("model.holrr")
    >>> again, bool((again.predict(X) == model.predict(X)).all())
    (HOLRR(rank=1), True)
    """
    return load_with_notes(path)[0]


def load_with_notes(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """What `load` gives, and the notes beside it.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    value : estimator, Moments or Tucker
    notes : dict
        What `save` was given as `notes`.

    Examples
    --------
    >>> from holrr import RLS
    >>> from holrr.io import load_with_notes, save
    >>> save(RLS(), "model.holrr", notes={"units": "K"})
    >>> model, notes = load_with_notes("model.holrr")
    >>> model, notes["units"]
    (RLS(), 'K')
    """
    header, arrays = read_container(path)
    try:
        decoder = Decoder(arrays, header["version"], header.get("sklearn"))
        value, notes = decoder.decode(header["object"]), header["notes"]
        if not isinstance(value, _KINDS) or not isinstance(notes, dict):
            raise ValueError(f"an object of {type(value).__name__}.")
        return value, notes
    except MemoryError:
        raise
    except Exception as error:  # a tree that nobody here wrote can raise anything
        raise ValueError(
            f"{os.fspath(path)!r}, written by holrr {header.get('holrr')}, holds what holrr "
            f"{__version__} cannot read: {error}"
        ) from error


def load_moments(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """Moments and the notes beside them."""
    value, notes = load_with_notes(path)
    if not isinstance(value, CentredMoments):
        raise ValueError(
            f"{os.fspath(path)!r} holds a {type(value).__name__}, not moments; use holrr.load."
        )
    return value, notes
