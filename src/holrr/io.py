"""Saving and loading of models in files without code, with skops (docs/file_format.md)."""

from __future__ import annotations

import copy
import errno
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
from sklearn.base import BaseEstimator

from .core.state import PlainState, writing_file

__all__ = ["load", "save"]

PathLike = str | os.PathLike[str]

# Text of a file, the only compressed member, and its largest size as a multiple of the file size.
_SCHEMA, _EXPANSION = "schema.json", 100


def save(model: Any, path: PathLike) -> None:
    """Save an estimator, a transformer or a scikit-learn pipeline to a file without code.

    Estimators of this library and of scikit-learn, fitted or not, and transformers of chemotools
    can be saved, alone or inside each other: a `Pipeline`, a `ColumnTransformer`, a
    `TransformedTargetRegressor`, a `GridSearchCV`. The file is written atomically: after a crash,
    `path` is the old file or the new one. Arrays on a device, or of a library other than NumPy, are
    saved as NumPy arrays.

    Parameters
    ----------
    model : estimator
        The object to save.
    path : str or path
        The file. No suffix is added to its name.

    Raises
    ------
    TypeError
        If the model contains an object that a file without code cannot hold, such as a function of
        your own as kernel. The message names it.
    OSError
        If the file cannot be written, or is a device or a pipe.

    See Also
    --------
    Moments.save : Files of moments.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import holrr
    >>> holrr.save(make_pipeline(StandardScaler(), holrr.HOLRR(rank=2)), "pipeline.holrr")
    >>> holrr.load("pipeline.holrr")[-1]
    HOLRR(rank=2)
    """
    if not isinstance(model, BaseEstimator):
        raise TypeError(
            f"save accepts an estimator, a transformer or a pipeline; got an object of "
            f"{type(model).__module__}.{type(model).__qualname__}."
        )
    from skops.io import dumps, get_untrusted_types

    def write(file: BinaryIO) -> None:
        with writing_file():
            try:
                content = dumps(_without_index(model))
            except Exception as error:  # each kind of object that cannot be saved has its own
                raise TypeError(f"{name} cannot be saved: {error}") from error
        with ZipFile(BytesIO(content)) as source, ZipFile(file, "w") as target:
            for member in source.namelist():
                kind = ZIP_DEFLATED if member == _SCHEMA else ZIP_STORED
                target.writestr(member, source.read(member), kind)
        check_members(file)
        foreign = set(get_untrusted_types(file=file)) - set(TRUSTED)
        if foreign:
            raise TypeError(
                f"{name} cannot be saved: it contains {', '.join(sorted(foreign))}. A file holds "
                f"only objects of holrr, scikit-learn, NumPy and chemotools, and no functions of "
                f"your own. Replace it, or use joblib.dump for files that only you will load."
            )

    _check_path(path)
    name = type(model).__name__
    write_atomically(path, write)


def load(path: PathLike) -> Any:
    """Load an estimator or a pipeline from a file of `save`.

    Only classes that are listed in this library are created: its estimators, scikit-learn's, the
    types of NumPy and some transformers of chemotools. The content of the file cannot add to this
    list. The only functions on it are those of arrays in NumPy and SciPy (``np.log``) and the
    scores of regressions in scikit-learn. Steps of scikit-learn that another version wrote give an
    `InconsistentVersionWarning` of scikit-learn.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        The saved object. Arrays are NumPy arrays.

    Raises
    ------
    ValueError
        If the file is damaged, cut off, not a file of `save`, written by a newer version, or if it
        names other classes or functions.

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
    _check_path(path)
    from skops.io import load as read

    with open(path, "rb") as file:
        try:
            check_members(file)
            found = read(file, trusted=TRUSTED)
        except Exception as error:  # damaged and crafted files can raise any exception
            raise ValueError(
                f"{os.fspath(path)!r} is damaged, or no file of holrr.save that this version can "
                f"read: {str(error).partition(chr(10))[0] or type(error).__name__}"
            ) from error
    if not isinstance(found, BaseEstimator):
        raise ValueError(
            f"{os.fspath(path)!r} contains an object of {type(found).__name__}, not an estimator."
        )
    return found


def _without_index(value: Any) -> Any:
    """Return a copy of a model in which columns of a `ColumnTransformer` are no index of pandas."""
    if type(value).__module__.partition(".")[0] == "pandas" and hasattr(value, "nlevels"):
        return np.asarray(value)
    if type(value) in (list, tuple):
        return type(value)(map(_without_index, value))
    if type(value) is dict:
        return {k: _without_index(v) for k, v in value.items()}
    if isinstance(value, BaseEstimator) and not isinstance(value, PlainState):
        found = copy.copy(value)
        vars(found).update(_without_index(dict(vars(value))))
        return found
    return value


def check_members(file: BinaryIO) -> None:
    """Raise a ValueError if the members of a zip archive are much larger than the file."""
    with ZipFile(file) as archive:
        sizes = {m.filename: m.file_size for m in archive.infolist()}
    size = file.seek(0, os.SEEK_END)
    if sizes.pop(_SCHEMA, 0) > _EXPANSION * size or sum(sizes.values()) > size:
        raise ValueError("its content is larger than the file.")
    file.seek(0)


def _check_path(path: Any) -> None:
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"path must be the name of a file; got an object of {type(path).__name__}.")


# ---------------------------------------------------------------- classes that a file may name


def _names(module: str, names: str) -> tuple[str, ...]:
    return tuple(f"{module}.{name}" for name in names.split())


# Beside the estimators of scikit-learn and the types of NumPy, which skops itself lists. A class is
# on this list only if neither its constructor nor `__setstate__` calls what it gets.
TRUSTED: tuple[str, ...] = (
    *_names("holrr.linear.estimators", "RLS LRR HOLRR"),
    *_names("holrr.model_selection.linear", "RLSCV LRRCV HOLRRCV"),
    *_names("holrr.model_selection.splitters", "BlockKFold"),
    *_names("holrr.kernel.estimators", "KernelRLS KernelLRR KernelHOLRR"),
    *_names("holrr.kernel.search", "KernelRLSCV KernelLRRCV KernelHOLRRCV"),
    *_names("holrr.penalized.trace_norm", "TraceNormRegression"),
    *_names("holrr.penalized.mlmtnc", "MLMTNC"),
    *_names("holrr.data.scaling", "Standardizer"),
    *_names("holrr.data.delays", "Delayer"),
    *_names("holrr.data.along", "Along"),
    *_names("holrr.diagnostics.monitor", "InputMonitor"),
    "numpy.dtype",
    *_names(
        "sklearn.model_selection._split",
        "KFold GroupKFold StratifiedKFold StratifiedGroupKFold TimeSeriesSplit LeaveOneOut "
        "LeavePOut LeaveOneGroupOut LeavePGroupsOut RepeatedKFold RepeatedStratifiedKFold "
        "ShuffleSplit StratifiedShuffleSplit GroupShuffleSplit PredefinedSplit _CVIterableWrapper",
    ),
    *_names("sklearn.compose._column_transformer", "make_column_selector _RemainderColsList"),
    *_names("sklearn.metrics._scorer", "_PassthroughScorer _Scorer"),
    *_names(
        "sklearn.metrics._regression",
        "r2_score mean_squared_error mean_absolute_error root_mean_squared_error "
        "explained_variance_score median_absolute_error max_error mean_absolute_percentage_error",
    ),
    *_names("chemotools.baseline._air_pls", "AirPls"),
    *_names("chemotools.baseline._ar_pls", "ArPls"),
    *_names("chemotools.baseline._as_ls", "AsLs"),
    *_names("chemotools.baseline._constant_baseline_correction", "ConstantBaselineCorrection"),
    *_names("chemotools.baseline._cubic_spline_correction", "CubicSplineCorrection"),
    *_names("chemotools.baseline._linear_correction", "LinearCorrection"),
    *_names("chemotools.baseline._non_negative", "NonNegative"),
    *_names("chemotools.baseline._polynomial_correction", "PolynomialCorrection"),
    *_names("chemotools.baseline._rubberband_correction", "RubberbandCorrection"),
    *_names("chemotools.baseline._subtract_reference", "SubtractReference"),
    *_names("chemotools.derivative._norris_william", "NorrisWilliams"),
    *_names("chemotools.derivative._savitzky_golay", "SavitzkyGolay"),
    *_names("chemotools.feature_selection._index_selector", "IndexSelector"),
    *_names("chemotools.feature_selection._range_cut", "RangeCut"),
    *_names("chemotools.scale._band_scaler", "BandScaler"),
    *_names("chemotools.scale._min_max_scaler", "MinMaxScaler"),
    *_names("chemotools.scale._norm_scaler", "NormScaler"),
    *_names("chemotools.scale._pareto_scaler", "ParetoScaler"),
    *_names("chemotools.scale._point_scaler", "PointScaler"),
    *_names(
        "chemotools.scatter._extended_multiplicative_scatter_correction",
        "ExtendedMultiplicativeScatterCorrection",
    ),
    *_names(
        "chemotools.scatter._multiplicative_scatter_correction", "MultiplicativeScatterCorrection"
    ),
    *_names("chemotools.scatter._robust_normal_variate", "RobustNormalVariate"),
    *_names("chemotools.scatter._standard_normal_variate", "StandardNormalVariate"),
    *_names("chemotools.smooth._mean_filter", "MeanFilter"),
    *_names("chemotools.smooth._median_filter", "MedianFilter"),
    *_names("chemotools.smooth._modified_sinc_smoother", "ModifiedSincFilter"),
    *_names("chemotools.smooth._savitzky_golay_filter", "SavitzkyGolayFilter"),
    *_names("chemotools.smooth._whittaker_smooth", "WhittakerSmooth"),
    *_names("chemotools.utils._whittaker_solvers", "BandedSolver SparseSolver"),
)


# ---------------------------------------------------------------- atomic writing


def write_atomically(path: PathLike, write: Callable[[BinaryIO], None]) -> None:
    """Write a file with the function `write`, and put it at `path` atomically.

    The bytes are written to a new file in the same folder (a rename must not cross file systems)
    and flushed to disk, and then the file is renamed. At any moment, also after a crash, `path` is
    the old file or the new one. A symbolic link is kept, and its target is replaced. The new file
    gets the permissions of the old one. A process that is killed can leave the file
    ``.<name>.<random>.tmp``, which no program reads.
    """
    target, old = check_writable(path)
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode)
    # Names have at most 255 bytes, so long names are shortened before a suffix is added.
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}.tmp")
    try:
        # Some formats (HDF5) read the bytes that they have written.
        with open(temporary, "x+b", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            if old is not None:
                _inherit(temporary, old)
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_writable(path: PathLike) -> tuple[Path, os.stat_result | None]:
    """Return the target of `path` and its file status; raise an OSError if it cannot be replaced.

    Devices, pipes and sockets are never replaced by a file.
    """
    target, shown = Path(os.path.realpath(path)), os.fspath(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"the folder {target.parent} does not exist", shown)
    try:
        old = os.stat(path)
    except FileNotFoundError:
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        kind = "a folder" if stat.S_ISDIR(old.st_mode) else "a device or a pipe"
        raise OSError(errno.EINVAL, f"the path is {kind}, not a regular file", shown)
    for place in [target.parent] if old is None else [target.parent, target]:
        if not os.access(place, os.W_OK):
            raise PermissionError(errno.EACCES, f"{place} is read-only", shown)
    return target, old


def _inherit(path: Path, old: os.stat_result) -> None:
    """Copy owner and permissions of the old file, as far as this user may set them."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(path, old.st_uid, old.st_gid)
    os.chmod(path, stat.S_IMODE(old.st_mode))
