"""Pipelines of scikit-learn that files may hold, and files that were tampered with."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
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
    model = KernelRLS(kernel="rbf", n_components=9, random_state=0)
    return make_pipeline(columns, "passthrough", Standardizer(), Delayer([0, 1]), model)


PIPELINES: list[Callable[[], Pipeline]] = [
    of_all_kinds,
    with_rare_categories,
    with_a_remainder,
    with_our_own,
]

# ---------------------------------------------------------------- forged files


@dataclass
class Contents:
    """Members of a file, to be changed and written with checksums that are right."""

    header: dict[str, Any]
    arrays: dict[str, bytes]

    @classmethod
    def of(cls, path: Path) -> Contents:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        header = json.loads(members.pop("header.json"))
        return cls(header, {name.removesuffix(".npy"): v for name, v in members.items()})

    def copy(self) -> Contents:
        return Contents(copy.deepcopy(self.header), dict(self.arrays))

    def write(self, path: Path) -> None:
        sums = {name: hashlib.sha256(data).hexdigest() for name, data in self.arrays.items()}
        text = json.dumps({**self.header, "sha256": sums}).encode()
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in self.arrays.items():
                archive.writestr(f"{name}.npy", data)
            archive.writestr("header.json", text)
            archive.comment = hashlib.sha256(text).hexdigest().encode()

    def put(self, array: np.ndarray, *, pickled: bool = False) -> dict[str, Any]:
        """A node for a new array."""
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, array, allow_pickle=pickled)
        name = f"forged{len(self.arrays)}"
        self.arrays[name] = buffer.getvalue()
        return {"$": "array", "name": name}

    def read(self, name: str) -> np.ndarray:
        return np.lib.format.read_array(io.BytesIO(self.arrays[name]), allow_pickle=False)

    @property
    def tree(self) -> Any:
        return self.header["object"]


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """All objects of a tree that have a kind."""
    if isinstance(tree, dict):
        if "$" in tree:
            yield tree
        for value in tree.values():
            yield from nodes(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from nodes(value)


def pick(rng: np.random.Generator, values: Any) -> Any:
    found = list(values)
    return found[rng.integers(len(found))]


def a_step(rng: np.random.Generator, file: Contents) -> dict[str, Any]:
    return pick(rng, (node for node in nodes(file.tree) if node["$"] == "sklearn"))


class Owned:
    """What runs code when it is unpickled."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('code has run')",))


FOREIGN = ["Popen", "os.system", "eval", "exec", "QuantileTransformer", "GridSearchCV", "SVR"]
FOREIGN += ["KBinsDiscretizer", "__import__", "sklearn.preprocessing.StandardScaler", "HOLRR", ""]
HIDING = ["transform", "fit_transform", "__class__", "__dict__", "get_params", "_validate_params"]
HIDING += ["__reduce__", "__sklearn_tags__", "named_steps", "another_"]
KINDS = ["code", "pickle", "function", "object", "Sklearn", "", None, 3, ["sklearn"]]
# What no field of a step may be.
NOWHERE = [
    {"$": "splitter", "class": "KFold", "state": {}},
    {"$": "clock", "class": "date", "value": "2020-01-01"},
    {"$": "dict", "items": [[{"$": "tuple", "items": []}, 1]]},
    {"$": "float", "value": "1e"},
    {"$": "dtype", "of": "scalar", "name": "void"},
    {"$": "dtype", "of": "dtype", "name": "O,O"},
    {"$": "array", "name": "no such"},
]


def foreign_class(rng, file: Contents) -> None:
    a_step(rng, file)["class"] = pick(rng, FOREIGN)


def foreign_kind(rng, file: Contents) -> None:
    pick(rng, nodes(file.tree))["$"] = pick(rng, KINDS)


def foreign_value(rng, file: Contents) -> None:
    step = a_step(rng, file)
    part = step[pick(rng, [k for k in ("params", "state") if step[k]])]
    part[pick(rng, part)] = copy.deepcopy(pick(rng, NOWHERE))


def complex_value(rng, file: Contents) -> None:
    step = a_step(rng, file)
    part = step[pick(rng, [k for k in ("params", "state") if step[k]])]
    part[pick(rng, part)] = file.put(1j * np.ones(3))


def function_as_parameter(rng, file: Contents) -> None:
    """A transformer that calls what a file names, if it were built."""
    name = pick(rng, ["func", "inverse_func", "kw_args"])
    value = pick(rng, ["os.system", {"$": "dict", "items": [["cmd", "touch owned"]]}, 1, True])
    params = {"func": None, "inverse_func": None, "kw_args": None, name: value}
    a_step(rng, file).update({"class": "FunctionTransformer", "params": params, "state": {}})


def without_parameter(rng, file: Contents) -> None:
    params = a_step(rng, file)["params"]
    del params[pick(rng, params)]


def more_fields(rng, file: Contents) -> None:
    part = a_step(rng, file)[pick(rng, ["params", "state"])]
    part[pick(rng, HIDING)] = pick(rng, [1, None, "x", {"$": "list", "items": []}])


def more_keys(rng, file: Contents) -> None:
    wanted = [node for node in nodes(file.tree) if node["$"] in ("sklearn", "pipeline")]
    pick(rng, wanted)[pick(rng, ["memory", "module", "code", "steps"])] = pick(rng, ["x", None, 1])


def other_shape(rng, file: Contents) -> None:
    """One row or column more, or an axis more, of an array of numbers in a step."""
    steps = [node for node in nodes(file.tree) if node["$"] == "sklearn"]
    found = [n for step in steps for n in step["state"].values() if isinstance(n, dict)]
    found = [n for n in found if n.get("$") == "array"]
    node = pick(rng, found)
    array = file.read(node["name"])
    longer = np.concatenate([array, array[:1]]) if array.ndim else np.ones(3)
    node.clear()
    node.update(file.put(pick(rng, [longer, array[None], array[:0]])))


def pickled_array(rng, file: Contents) -> None:
    name = pick(rng, file.arrays)
    file.arrays[name] = file.arrays[file.put(np.array([Owned()]), pickled=True)["name"]]


def newer_version(rng, file: Contents) -> None:
    file.header["version"] = pick(rng, [5, 10**9, "4", None, 4.5, True + 98])


def no_version_of_sklearn(rng, file: Contents) -> None:
    file.header["sklearn"] = pick(rng, [None, 1, "", "new", {"$": "list", "items": []}, "1"])


def steps_of_one_name(rng, file: Contents) -> None:
    pipelines = [node for node in nodes(file.tree) if node["$"] == "pipeline"]
    items = pick(rng, [node for node in pipelines if len(node["items"]) > 1])["items"]
    items[-1]["items"][0] = pick(rng, [items[0]["items"][0], "a__b", 3, None, "memory"])


def columns_that_do_not_exist(rng, file: Contents) -> None:
    wanted = [node for node in nodes(file.tree) if node.get("class") == "ColumnTransformer"]
    places = pick(rng, wanted)["state"]["_transformer_to_input_indices"]["items"]
    chosen = [items for _, items in places if items["items"]]
    pick(rng, chosen)["items"][0] = pick(rng, [7, 10**9, -1, "x", 0.5])


# Every file that these write must be refused.
REFUSED = [foreign_class, foreign_kind, foreign_value, complex_value, function_as_parameter]
REFUSED += [without_parameter, more_fields, more_keys, other_shape, pickled_array, newer_version]
REFUSED += [no_version_of_sklearn, steps_of_one_name, columns_that_do_not_exist]


def exchanged_nodes(rng, file: Contents) -> None:
    """Two values of a file in each other's place."""
    a, b = (pick(rng, nodes(file.tree)) for _ in range(2))
    a_copy, b_copy = copy.deepcopy(a), copy.deepcopy(b)
    a.clear()
    a.update(b_copy)
    b.clear()
    b.update(a_copy)


def other_number(rng, file: Contents) -> None:
    """Another number, truth value or text in a step."""
    places = [
        (part, key)
        for node in nodes(file.tree)
        if node["$"] in ("sklearn", "pipeline", "slice", "list", "tuple", "objects")
        for part in (node, node.get("params", {}), node.get("state", {}), node.get("items", []))
        for key in (range(len(part)) if isinstance(part, list) else list(part))
        if key != "$" and (part[key] is None or isinstance(part[key], (bool, int, float, str)))
    ]
    part, key = pick(rng, places)
    part[key] = pick(rng, [0, 1, 2, 3, -1, 10**30, 0.5, True, None, "auto", "drop", "\x00", []])


def without_attribute(rng, file: Contents) -> None:
    state = pick(rng, [n for n in nodes(file.tree) if n["$"] == "sklearn" and n["state"]])["state"]
    del state[pick(rng, state)]


# These write some files of unfitted models, whose content is valid.
CHANGED = [exchanged_nodes, other_number, without_attribute]

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
