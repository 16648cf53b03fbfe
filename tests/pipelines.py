"""Pipelines of scikit-learn that files can contain, and a watch for code that is run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from holrr import HOLRR, HOLRRCV, RLS, KernelRLS
from holrr.data import Delayer, Standardizer

# ---------------------------------------------------------------- data and pipelines


def objects(n: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of numbers and text, (n, 7), with missing ones among them, and outputs."""
    rng = np.random.default_rng(seed)
    X = np.empty((n, 7), dtype=object)
    X[:, :4] = rng.normal(size=(n, 4))
    X[:, 4] = rng.choice(["u", "v", "w"], n)
    X[:, 5] = rng.choice([1.0, 2.0, 5.0], n)
    X[:, 6] = rng.choice(["x", "y", "zz"], n, p=[0.7, 0.2, 0.1])
    X[3, 0] = X[5, 4] = np.nan
    return X, rng.normal(size=(n, 3, 2))


def of_all_kinds() -> Pipeline:
    """Nested pipelines, encoders, dropped and kept columns."""
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    text = make_pipeline(
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    )
    columns = [
        ("numbers", numbers, [0, 1]),
        ("text", text, [4]),
        ("code", OneHotEncoder(drop="first", dtype=np.float32), [5]),
        ("kept", "passthrough", [2]),
        ("dropped", "drop", [3, 6]),
    ]
    return make_pipeline(ColumnTransformer(columns), PCA(4), HOLRR(rank=2))


def with_rare_categories() -> Pipeline:
    encoder = OneHotEncoder(min_frequency=9, handle_unknown="infrequent_if_exist")
    columns = [("rare", encoder, [6]), ("scaled", MinMaxScaler(), slice(2, 4))]
    return make_pipeline(
        ColumnTransformer(columns, sparse_threshold=0), HOLRRCV(cv=3, alphas=[0.1, 1.0])
    )


def with_a_remainder() -> Pipeline:
    columns = [("text", OneHotEncoder(), [6]), ("dropped", "drop", [4, 5])]
    return make_pipeline(
        ColumnTransformer(columns, remainder=SimpleImputer()),
        FunctionTransformer(),
        PolynomialFeatures(2),
        PCA(3, whiten=True, svd_solver="randomized", random_state=0),
        RLS(),
    )


def with_our_own() -> Pipeline:
    columns = ColumnTransformer([("scaled", StandardScaler(), [2, 3])])
    model = KernelRLS(kernel="rbf", landmarks=9, random_state=0)
    return make_pipeline(columns, "passthrough", Standardizer(), Delayer([0, 1]), model)


PIPELINES: list[Callable[[], Pipeline]] = [
    of_all_kinds,
    with_rare_categories,
    with_a_remainder,
    with_our_own,
]

# ---------------------------------------------------------------- code that is run

# Events of the interpreter that loading a file must not cause.
_FORBIDDEN = {"exec", "marshal.loads", "pickle.find_class", "os.system", "os.exec", "os.spawn"}
_FORBIDDEN |= {"os.posix_spawn", "os.fork", "subprocess.Popen", "ctypes.dlopen", "socket.connect"}
_FORBIDDEN |= {"os.remove", "os.rename", "os.mkdir", "shutil.rmtree", "import", "code.__new__"}
_watched: list[str] | None = None


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watched is not None:
        writes = (
            event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
        )
        if event in _FORBIDDEN or writes:
            _watched.append(f"{event} {arguments!r:.200}")


_is_hooked = False


@contextmanager
def watching() -> Iterator[list[str]]:
    """The forbidden events that happen meanwhile; modules should be imported before."""
    global _watched, _is_hooked
    if not _is_hooked:  # hooks stay for good
        sys.addaudithook(_hook)
        _is_hooked = True
    _watched = found = []
    try:
        yield found
    finally:
        _watched = None
