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

# Classes that a file may contain at the top level; other values are parts of these.
_KINDS = (BaseEstimator, CentredMoments, Tucker)


def save(
    value: Any, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None
) -> None:
    """Save an estimator, fitted or not, a pipeline, moments or a Tucker tensor to a file.

    The other steps of a pipeline may be transformers of this library, or the transformers of
    scikit-learn that docs/file_format.md lists: `StandardScaler`, `OneHotEncoder`,
    `ColumnTransformer` and others.

    The file contains no code and is written atomically: after a crash it has either its old or its
    new content. Symbolic links are followed, and permissions are kept. Arrays on a device, or of
    a library other than NumPy, are saved as NumPy arrays.

    Parameters
    ----------
    value : estimator of this library, Pipeline, Moments or Tucker
        The object to save.
    path : str or path
        The file. No suffix is added to its name.
    notes : dict of JSON values, optional
        Notes that are stored in the header of the file.

    Raises
    ------
    TypeError
        If a parameter, an attribute or a step of a pipeline cannot be saved without code, such as
        a function as kernel. The message names it.
    ValueError
        If attributes are invalid, so that the file could not be loaded.
    OSError
        If the file cannot be written, or is a device or a pipe.

    Examples
    --------
    >>> from holrr import HOLRR, save
    >>> from holrr.io import load_with_notes
    >>> save(HOLRR(rank=2), "model.holrr", notes={"by": "Ada"})
    >>> load_with_notes("model.holrr")
    (HOLRR(rank=2), {'by': 'Ada'})
    """
    if not isinstance(value, _KINDS):
        raise TypeError(
            f"save accepts an estimator of this library, a pipeline, Moments or a Tucker tensor; "
            f"got an object of {type(value).__module__}.{type(value).__qualname__}."
        )
    _check_path(path)
    encoder, name = Encoder(), type(value).__name__
    tree = encoder.encode(value, name)
    try:  # make sure that the file can be loaded
        Decoder(encoder.arrays, VERSION).decode(tree)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} cannot be saved, since it could not be loaded: {error}"
        ) from error
    header = {
        "holrr": __version__,
        "sklearn": SKLEARN_VERSION,
        "object": tree,
        "notes": dict(notes or {}),
    }
    write_container(path, header, encoder.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator, a pipeline, moments or a Tucker tensor from a file of `save`.

    Only classes of this library, and the classes of scikit-learn that docs/file_format.md lists,
    are created. Checksums of all bytes are verified first. Arrays are loaded as NumPy arrays. If a
    pipeline was saved with another minor version of scikit-learn, `load` warns.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator, Pipeline, Moments or Tucker
        The saved object.

    Raises
    ------
    ValueError
        If the file is not a holrr file, is damaged or cut off, or was written by a newer version,
        or if a field of the saved object has a wrong type or shape.

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
    """Load an object and its notes from a file of `save`.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    value : estimator, Pipeline, Moments or Tucker
        The saved object.
    notes : dict
        The notes that were passed to `save`.

    Examples
    --------
    >>> from holrr import RLS
    >>> from holrr.io import load_with_notes, save
    >>> save(RLS(), "model.holrr", notes={"units": "K"})
    >>> model, notes = load_with_notes("model.holrr")
    >>> model, notes["units"]
    (RLS(), 'K')
    """
    _check_path(path)
    header, arrays = read_container(path)
    try:
        decoder = Decoder(arrays, header["version"], header.get("sklearn"))
        value, notes = decoder.decode(header["object"]), header["notes"]
        if not isinstance(value, _KINDS) or not isinstance(notes, dict):
            raise ValueError(f"the saved object is of type {type(value).__name__}.")
        return value, notes
    except MemoryError:
        raise
    except Exception as error:  # an invalid tree can raise any exception
        raise ValueError(
            f"{os.fspath(path)!r}, written by holrr {header.get('holrr')}, cannot be read by holrr "
            f"{__version__}: {error}"
        ) from error


def _check_path(path: Any) -> None:
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"path must be the name of a file; got an object of {type(path).__name__}.")


def load_moments(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """Load moments and their notes."""
    value, notes = load_with_notes(path)
    if not isinstance(value, CentredMoments):
        raise ValueError(
            f"{os.fspath(path)!r} contains a {type(value).__name__}, not moments; use holrr.load."
        )
    return value, notes
