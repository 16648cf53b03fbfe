"""Files of `holrr.save` with one node replaced, so that they name code that must not run.

A file of skops is a zip archive whose member ``schema.json`` is a tree of nodes; the ``__loader__``
of a node says how an object is made of its parts.
"""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Node = dict[str, Any]


class Contents:
    """Members of a file, to be changed and written again."""

    def __init__(self, tree: Node, members: dict[str, bytes]) -> None:
        self.tree, self.members = tree, members

    @classmethod
    def of(cls, path: Path) -> Contents:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        return cls(json.loads(members.pop("schema.json")), members)

    def copy(self) -> Contents:
        return Contents(copy.deepcopy(self.tree), dict(self.members))

    def write(self, path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in self.members.items():
                archive.writestr(name, data)
            archive.writestr("schema.json", json.dumps(self.tree))

    def nodes(self) -> list[Node]:
        """Nodes that are read. A node whose number has been seen stands for an earlier object."""
        return list(_nodes(self.tree, set()))


def _nodes(tree: Any, seen: set[int]) -> Iterator[Node]:
    if isinstance(tree, list):
        for value in tree:
            yield from _nodes(value, seen)
    if not isinstance(tree, dict):
        return
    if "__loader__" in tree:
        if tree.get("__id__") in seen:
            return
        if tree.get("__id__") is not None:
            seen.add(tree["__id__"])
        yield tree
    for value in tree.values():
        yield from _nodes(value, seen)


def pick(rng: np.random.Generator, values: Any) -> Any:
    found = list(values)
    return found[rng.integers(len(found))]


# ---------------------------------------------------------------- nodes that name code

FUNCTIONS = [("os", "system"), ("posix", "system"), ("builtins", "eval"), ("builtins", "exec")]
FUNCTIONS += [("builtins", "__import__"), ("builtins", "getattr"), ("subprocess", "run")]
FUNCTIONS += [("joblib", "load"), ("pickle", "loads"), ("importlib", "import_module")]
FUNCTIONS += [("sklearn.utils", "all_estimators"), ("holrr", "load"), ("holrr.io", "os.system")]
FUNCTIONS += [("holrr.linear.estimators.RLS", "fit"), ("numpy", "load"), ("os", "mkdir")]
CLASSES = [("subprocess", "Popen"), ("pathlib", "Path"), ("types", "CodeType")]
CLASSES += [("socket", "socket")]
CLASSES += [("ctypes", "CDLL"), ("logging", "FileHandler"), ("pandas", "DataFrame")]
CLASSES += [("functools", "partial"), ("holrr.core.tensor", "Tucker"), ("holrr.io", "Path")]
CLASSES += [("sklearn.utils", "Bunch"), ("holrr", "HOLRR"), ("collections", "UserDict")]


def plain(value: Any) -> Node:
    text = json.dumps(value)
    return {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": text}


def node(name: tuple[str, str], loader: str, **more: Any) -> Node:
    return {"__class__": name[1], "__module__": name[0], "__loader__": loader, **more}


def several(kind: str, values: list[Node]) -> Node:
    return node(("builtins", kind), f"{kind.capitalize()}Node", content=values)


def mapping(values: dict[str, Node], name: tuple[str, str] = ("builtins", "dict")) -> Node:
    kinds = several("list", [node(("builtins", "str"), "TypeNode") for _ in values])
    return node(name, "DictNode", content=values, key_types=kinds)


def arguments(rng: np.random.Generator) -> Node:
    return several("tuple", [plain(pick(rng, ["touch owned", "__import__('os').getcwd()"]))])


def foreign_name(rng: np.random.Generator) -> tuple[str, str]:
    return pick(rng, FUNCTIONS + CLASSES)


def a_function(rng) -> Node:
    return node(foreign_name(rng), pick(rng, ["FunctionNode", "TypeNode"]))


def an_object(rng) -> Node:
    """An object whose `__setstate__` or attributes are those of the file."""
    return node(pick(rng, CLASSES), "ObjectNode", content=mapping({"args": arguments(rng)}))


def a_reduced_object(rng) -> Node:
    """What `__reduce__` of pickle does: a call of a function with arguments."""
    return node(foreign_name(rng), "ConstructorFromReduceNode", content=arguments(rng))


def a_constructor(rng) -> Node:
    loader = pick(rng, ["LossNode", "TreeNode"])
    state = mapping({"a": a_function(rng)})
    return node(foreign_name(rng), loader, __reduce__={"args": arguments(rng)}, content=state)


def an_operator(rng) -> Node:
    """The way of CVE-2025-54412: the class of the node is not the class that is made."""
    name = pick(rng, ["methodcaller", "attrgetter", "itemgetter", "call"])
    module = pick(rng, ["operator", "operator", "builtins", "sklearn.linear_model"])
    return node((module, name), "OperatorFuncNode", attrs=arguments(rng))


def a_method(rng) -> Node:
    """The way of CVE-2025-54413: an attribute of a trusted object is read on loading."""
    owner = pick(rng, [("holrr.linear.estimators", "RLS"), ("sklearn.svm._classes", "SVC")])
    func = pick(rng, ["fit", "__class__", "__init__.__globals__", "__reduce__", "__builtins__"])
    target = node(owner, "ObjectNode", content=mapping({"alpha": plain(1.0)}))
    shown = pick(rng, [owner, ("builtins", "str")])
    return node(shown, "MethodNode", content={"func": func, "obj": target})


def a_partial(rng) -> Node:
    parts = {"func": a_function(rng), "args": arguments(rng)}
    parts |= {"kwds": mapping({}), "namespace": mapping({})}
    return node(("functools", "partial"), "PartialNode", content=parts)


def a_factory(rng) -> Node:
    parts = {"main": mapping({}), "default_factory": pick(rng, [a_function, a_partial])(rng)}
    return node(("collections", "defaultdict"), "DefaultDictNode", content=parts)


def a_container(rng) -> Node:
    """A class that is called with the items of a list."""
    loader = pick(rng, ["ListNode", "SetNode", "TupleNode"])
    return node(foreign_name(rng), loader, content=[plain("touch owned")])


def a_mapping(rng) -> Node:
    return mapping({"a": plain(1)}, foreign_name(rng))


def keys(rng) -> Node:
    """The types of the keys are called with the keys."""
    found = mapping({"touch owned": plain(1)})
    found["key_types"] = several("list", [a_function(rng)])
    return found


def an_array(rng) -> Node:
    """An array is passed to its class."""
    items = {"type": "json", "content": [], "shape": several("tuple", [plain(0)])}
    return node(foreign_name(rng), "NdArrayNode", **items)


def a_sparse_matrix(rng) -> Node:
    return node(foreign_name(rng), "SparseMatrixNode", type="scipy", file="none.npz")


def a_generator(rng) -> Node:
    content = {"bit_generator": mapping({"bit_generator": plain(pick(rng, FUNCTIONS)[1])})}
    return node(foreign_name(rng), "RandomGeneratorNode", content=content)


def a_loader_of_another_version(rng) -> Node:
    return node(foreign_name(rng), pick(rng, ["ReduceNode", "EvalNode", "", "CachedNode"]))


def a_kind_of_ours(rng) -> Node:
    """Values that the library converts itself, with names that are not its own."""
    return pick(
        rng,
        [
            mapping({"$": plain(pick(rng, ["eval", "code", "", None, 3]))}),
            mapping({"$": plain("record"), "class": plain("Popen"), "state": mapping({})}),
            mapping({"$": plain("record"), "class": plain("HOLRR"), "state": mapping({})}),
            mapping({"$": plain("clock"), "class": plain("eval"), "value": plain("1")}),
            mapping({"$": plain("record"), "class": plain("Grid"), "state": keys(rng)}),
        ],
    )


EVIL: list[Callable[[np.random.Generator], Node]] = [
    *(a_function, an_object, a_reduced_object, a_constructor, an_operator, a_method, a_partial),
    *(a_factory, a_container, a_mapping, keys, an_array, a_sparse_matrix, a_generator),
    a_loader_of_another_version,
]


def wrapped(rng: np.random.Generator, evil: Node) -> Node:
    """The node inside other nodes, so that its own parents are harmless."""
    for _ in range(rng.integers(4)):
        evil = pick(
            rng,
            [
                lambda part: several("list", [plain(1), part]),
                lambda part: several("tuple", [part]),
                lambda part: mapping({"a": part}),
                lambda part: node(
                    ("sklearn.linear_model._ridge", "Ridge"),
                    "ObjectNode",
                    content=mapping({"alpha": part}),
                ),
                lambda part: node(
                    ("holrr.linear.estimators", "RLS"),
                    "ObjectNode",
                    content=mapping({"holrr_state": plain(1), "alpha": part}),
                ),
            ],
        )(evil)
    return evil


def craft(rng: np.random.Generator, original: Contents) -> Contents:
    """A file with one node that names code, or with another kind of attack."""
    file = original.copy()
    kind = rng.integers(10)
    if kind == 0:
        pickled = io.BytesIO()
        np.save(pickled, np.array([Owned()], dtype=object), allow_pickle=True)
        read = [n["file"] for n in file.nodes() if n.get("type") == "numpy"]
        file.members[pick(rng, read)] = pickled.getvalue()
        return file
    if kind == 1:
        states = [n for n in file.nodes() if "holrr_state" in n.get("content", ())]
        evil = plain(pick(rng, [0, 2, 10**9, -1, True, None, "1", [1]]))
        pick(rng, states)["content"]["holrr_state"] = evil
        return file
    if kind == 2:
        states = [n for n in file.nodes() if "holrr_state" in n.get("content", ())]
        state = pick(rng, states)["content"]
        state[pick(rng, [name for name in state if name != "holrr_state"])] = a_kind_of_ours(rng)
        return file
    if kind == 3:  # nodes of older versions of the format, of which some are weaker
        file.tree["protocol"] = pick(rng, [0, 1, -1, True, 10**6, "0", None])
    # The last parts of arrays and slices are no nodes; the root is replaced in place.
    target = pick(rng, file.nodes())
    keep = {k: v for k, v in target.items() if k in ("protocol", "_skops_version")}
    target.clear()
    target.update(wrapped(rng, pick(rng, EVIL)(rng)))
    target.update(keep)
    return file


class Owned:
    """An object that runs code when it is unpickled."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('code has run')",))
