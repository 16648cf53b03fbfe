"""Moments of arrays, files, Dask collections and streams of batches."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..core.moments import CentredMoments
from ..core.state import VERSION, check_version, from_plain, record, to_plain, writing_file
from ..data.labels import Labels, differing_axis, first_difference, other_features, same
from ..io import check_members, write_atomically

__all__ = ["Moments"]


@record
@dataclass(frozen=True, eq=False, repr=False)
class Moments(CentredMoments):
    """Means and centred second moments of ``(X, Y)``, which are sufficient for a linear fit.

    `from_arrays` and `from_batches` compute moments, ``+`` merges them, `save` and `load` write and
    read files, and ``fit_moments`` of the linear estimators fits a model to them. A product with a
    positive number, such as ``0.9 * moments``, multiplies the weights of all samples, so that old
    samples count less than samples that are added later.

    Parameters
    ----------
    n_samples : int
        Number of samples with positive weight.
    weight : float
        Sum of the sample weights; `n_samples` without weights.
    mean_x : array of shape (n_features,)
        Weighted mean of the inputs.
    mean_y : array of shape (d1, ..., dp)
        Weighted mean of the outputs.
    Sxx : array of shape (n_features, n_features)
        ``sum w (x - mean_x)(x - mean_x)'``.
    Sxy : array of shape (n_features, d1, ..., dp)
        ``sum w (x - mean_x) (y - mean_y)``.
    syy : float
        ``sum w ||y - mean_y||^2``.
    response_grams : tuple of p arrays of shape (d_i, d_i), or None
        Gram matrices of the output modes of the centred `Y`. Only ``subspaces="response"`` needs
        them.
    dtype : str
        Floating-point type of the data, "float64" or "float32". The moments themselves are float64.
    squares : array of shape (d1, ..., dp), or None
        ``sum w (y - mean_y)^2`` of each output, which add up to `syy`. None in files of older
        versions: fits to such moments have no estimate of the noise.
    weight_squares : float or None
        ``sum w g^2`` of samples with weights w in moments that were multiplied by g. None if the
        moments were never multiplied; the sum is then `weight`, since sample weights count
        repetitions.
    feature_names : array of shape (n_features,), or None
        Names of the features, if the data had names.
    labels : Labels or None
        Labels of inputs and outputs, if the data had labels. Moments of data with different labels
        cannot be merged.
    missing_outputs : array of bool, of shape (d1, ..., dp), or None
        Mask of the outputs that are missing in every sample. Their moments are zero, and
        `fit_moments` of an estimator with ``missing="ignore"`` leaves them out. Moments with
        different missing outputs cannot be merged.

    Examples
    --------
    Merged moments of two parts of the data give the same fit as all data:

    >>> import numpy as np
    >>> from holrr import HOLRR, Moments
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(60, 4)), rng.normal(size=(60, 3, 2))
    >>> here = Moments.from_arrays(X[:20], Y[:20])
    >>> there = Moments.from_arrays(X[20:], Y[20:])
    >>> there.save("there.npz")
    >>> merged = HOLRR(rank=2).fit_moments(here.merge(Moments.load("there.npz")))
    >>> bool(np.allclose(merged.coef_, HOLRR(rank=2).fit(X, Y).coef_))
    True

    Samples of ``here`` count half:

    >>> faded = 0.5 * here + there
    >>> faded.n_samples, faded.weight, round(faded.n_effective, 1)
    (60, 50.0, 55.6)
    """

    feature_names: np.ndarray | None = None
    labels: Labels | None = None
    missing_outputs: np.ndarray | None = None

    def __repr__(self) -> str:
        n = "" if self.missing_outputs is None else f", {int(self.missing_outputs.sum())} missing"
        return (
            f"Moments of {self.n_samples} samples with weight {self.weight:g}, "
            f"{self.n_features} features and outputs of shape {self.output_shape}{n}"
        )

    @staticmethod
    def from_arrays(
        X: Any,
        Y: Any,
        sample_weight: Any = None,
        response_grams: bool = False,
        *,
        missing: str = "raise",
    ) -> Moments:
        """Compute the moments of the samples in `X` and `Y`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Inputs. Memory maps are read in chunks within the memory budget, see
            `holrr.streaming.memory_budget`. Dask arrays are reduced on the active scheduler.
        Y : array of shape (n_samples, d1, ..., dp)
            Outputs.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples.
        response_grams : bool, default=False
            Whether to compute the Gram matrices of the output modes, for
            ``subspaces="response"``.
        missing : {"raise", "ignore"}, default="raise"
            How to handle NaN in `Y`. "raise" raises an error. "ignore" leaves out outputs that are
            missing in every sample. An output that is missing in some samples only always raises an
            error, since moments cannot represent it.

        Returns
        -------
        Moments
            Moments of all samples.
        """
        from ..data.validation import Samples, open_data
        from ..missing.fit import complete_outputs

        if missing not in ("raise", "ignore"):
            raise ValueError(f"missing must be 'raise' or 'ignore'; got {missing!r}.")
        data, names = open_data(X, Y, sample_weight, missing=missing)
        left_out = None
        if missing == "ignore":
            data, left_out = complete_outputs(data)
        if isinstance(data, Samples):
            moments = Moments.from_checked(data.X, data.Y, data.w, response_grams)
        else:
            moments = data.moments(response_grams)
        return replace(
            moments, feature_names=names.features, labels=names.labels, missing_outputs=left_out
        )

    @staticmethod
    def from_batches(
        batches: Iterable[tuple[Any, ...]],
        response_grams: bool = False,
        *,
        progress: bool = False,
    ) -> Moments:
        """Compute the moments of a stream of batches in one pass.

        Parameters
        ----------
        batches : iterable of pairs (X, Y) or triples (X, Y, sample_weight)
            Batches of any sizes.
        response_grams : bool, default=False
            Whether to compute the Gram matrices of the output modes, for
            ``subspaces="response"``.
        progress : bool, default=False
            Whether to show a progress bar on stderr.

        Returns
        -------
        Moments
            Moments of all batches.

        Examples
        --------
        >>> import numpy as np
        >>> from holrr import Moments
        >>> rng = np.random.default_rng(0)
        >>> stream = ((rng.normal(size=(20, 3)), rng.normal(size=(20, 2, 2))) for _ in range(5))
        >>> Moments.from_batches(stream).n_samples
        100
        """
        from .batches import moments_from_batches

        return moments_from_batches(batches, response_grams, progress)

    def merge(self, *others: CentredMoments) -> Self:
        """Return the moments of all samples together.

        Parameters
        ----------
        others : Moments
            Moments of data with the same features and outputs.

        Returns
        -------
        Moments
            Merged moments.
        """
        total = self
        for other in others:
            _check_same_names(total, other)
            merged = CentredMoments.merge(total, other)
            attributes = ("feature_names", "labels", "missing_outputs")
            kept = {name: _either(total, other, name) for name in attributes}
            total = replace(merged, **kept)
        return total

    def __add__(self, other: object) -> Self:
        return self.merge(other) if isinstance(other, CentredMoments) else NotImplemented

    def __radd__(self, other: object) -> Self:
        # For ``sum(list_of_moments)``, which starts with 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def save(self, path: Any) -> None:
        """Save the moments to an ``.npz`` file of NumPy without objects, atomically.

        Parameters
        ----------
        path : str or path
            The file. No suffix is added to its name.
        """
        arrays: dict[str, np.ndarray] = {}
        with writing_file():
            tree = {"moments": to_plain(self), "version": VERSION}
        text = np.array(json.dumps(_without_arrays(tree, arrays)))
        members: dict[str, Any] = {"tree": text, **arrays}
        write_atomically(path, lambda file: np.savez(file, **members))

    @staticmethod
    def load(path: Any) -> Moments:
        """Load moments from a file of `save`.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Moments
            Moments with NumPy arrays.
        """
        try:
            with open(path, "rb") as file:
                check_members(file)
                with np.load(file, allow_pickle=False) as archive:
                    arrays = {name: archive[name] for name in archive.files}
            tree = json.loads(str(arrays["tree"]))
            check_version(tree["version"], "the moments")
            moments = from_plain(_with_arrays(tree["moments"], arrays))
        except (FileNotFoundError, IsADirectoryError, PermissionError):
            raise
        except Exception as error:  # damaged files can raise any exception
            raise ValueError(
                f"{os.fspath(path)!r} is damaged, or no file of Moments.save that this version can "
                f"read: {error}"
            ) from error
        if not isinstance(moments, Moments):
            raise ValueError(f"{os.fspath(path)!r} contains no moments.")
        return moments


def _without_arrays(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Move the arrays of a tree to `arrays`.

    The tree becomes a value of JSON, in which ``{"$": "array", "name": name}`` stands for an array.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        name = f"array_{len(arrays)}"
        arrays[name] = np.asarray(value)
        return {"$": "array" if isinstance(value, np.ndarray) else "scalar", "name": name}
    if isinstance(value, dict):
        return {k: _without_arrays(v, arrays) for k, v in value.items()}
    if isinstance(value, tuple):
        return {"$": "tuple", "items": [_without_arrays(v, arrays) for v in value]}
    return [_without_arrays(v, arrays) for v in value] if isinstance(value, list) else value


def _with_arrays(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_with_arrays(v, arrays) for v in value]
    if not isinstance(value, dict):
        return value
    if value.get("$") == "tuple":
        return tuple(_with_arrays(v, arrays) for v in value["items"])
    if value.get("$") in ("array", "scalar"):
        array = arrays[value["name"]]
        return array if value["$"] == "array" else array[()]
    return {k: _with_arrays(v, arrays) for k, v in value.items()}


def _either(a: Any, b: Any, name: str) -> Any:
    """Return an attribute of `a`, or that of `b` if it is None."""
    found = getattr(a, name)
    return getattr(b, name, None) if found is None else found


def _check_same_names(a: Moments, b: Any) -> None:
    """Raise a ValueError if the names of features or outputs of two moments differ."""
    differ = other_features(a.feature_names, getattr(b, "feature_names", None))
    if differ is not None:
        raise ValueError(
            f"Moments of different features cannot be merged: {differ}. Put the columns of X in "
            f"the same order first."
        )
    missing = a.missing_outputs, getattr(b, "missing_outputs", None)
    if a.output_shape == getattr(b, "output_shape", None) and not same(*missing):
        mine, others = (np.zeros(a.output_shape, bool) if m is None else m for m in missing)
        where = tuple(int(i) for i in np.argwhere(mine != others)[0])
        raise ValueError(
            f"Moments that lack different outputs cannot be merged: output {where} is missing in "
            f"one of them only. Compute both from samples with the same missing outputs."
        )
    labels = a.labels, getattr(b, "labels", None)
    _check_same_inputs(*(found or Labels() for found in labels))
    mine, others = (None if found is None else found.outside for found in labels)
    if mine is None or others is None or mine.shape != others.shape:
        return  # only shapes can be compared
    if mine.is_transposed(others):
        raise ValueError(
            f"Moments of different outputs cannot be merged: one has the modes {mine.dims} and the "
            f"other {others.dims}. Put the dimensions of y in the same order first, with "
            f"y.transpose for instance."
        )
    k = differing_axis(mine, others)
    if k is not None:
        raise ValueError(
            f"Moments of different outputs cannot be merged: along {mine.dims[k]!r} "
            f"{first_difference(mine.coordinate(k), others.coordinate(k))}. Put the outputs of y "
            f"in the same order first."
        )


def _check_same_inputs(a: Labels, b: Labels) -> None:
    """Raise a ValueError if the modes or the missing cells of the inputs differ."""
    shapes = [[grid.shape for grid in labels.inputs] for labels in (a, b)]
    if all(shapes) and shapes[0] != shapes[1]:
        raise ValueError(
            f"Moments of different inputs cannot be merged: one has the modes {shapes[0]} and the "
            f"other {shapes[1]}."
        )
    used = [labels.used for labels in (a, b)]
    if not same(*used):
        raise ValueError(
            "Moments of different inputs cannot be merged: different cells of X were left out, "
            "since they were missing in every sample. Leave out the same cells in both."
        )
