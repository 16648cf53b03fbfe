"""Graphs of ONNX operators: what the nodes of a model are added to.

The functions that write a model call `Graph.constant` and `Graph.node`. `Nodes` collects what they
add for a graph of our own; the converters for skl2onnx add to its container in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

__all__ = ["OPSET", "Graph", "Nodes", "cast", "flatten", "shape_of"]

# The lowest version of the operators that all our nodes are valid in; later ones take them, too.
OPSET = 13


class Graph(Protocol):
    """What nodes are added to. Values in a graph are known by their names."""

    def constant(self, values: Any) -> str:
        """The name of an array that is stored in the graph."""
        ...

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The name of the output of a new node."""
        ...


@dataclass
class Nodes:
    """Nodes and constants of a graph, as protocol buffers.

    Parameters
    ----------
    helper, numpy_helper : modules of onnx
    taken : set of str
        Names that inputs and outputs have.
    """

    helper: Any
    numpy_helper: Any
    taken: set[str]
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def constant(self, values: Any) -> str:
        """The name of an array that is stored in the graph."""
        name = self._name("constant")
        array = np.ascontiguousarray(values).reshape(np.shape(values))
        self.constants.append(self.numpy_helper.from_array(array, name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The name of the output of a new node."""
        name = self._name(operator.lower())
        self.nodes.append(self.helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def end(self, value: str, name: str) -> None:
        """Call a value by the name of an output."""
        self.nodes.append(self.helper.make_node("Identity", [value], [name], name=f"{name}_end"))

    def _name(self, what: str) -> str:
        number = len(self.nodes) + len(self.constants)
        while f"{what}_{number}" in self.taken:
            number += 1
        self.taken.add(f"{what}_{number}")
        return f"{what}_{number}"


def cast(graph: Graph, value: str, dtype: np.dtype) -> str:
    """A value as floating-point numbers of a type."""
    from onnx.helper import np_dtype_to_tensor_dtype

    return graph.node("Cast", value, to=int(np_dtype_to_tensor_dtype(np.dtype(dtype))))


def shape_of(graph: Graph, sizes: Sequence[int]) -> str:
    """A shape with samples along the first axis, whose number is not known."""
    return graph.constant(np.array([-1, *sizes], dtype=np.int64))


def flatten(graph: Graph, value: str, n_columns: int) -> str:
    """A value with samples along its first axis as a matrix."""
    return graph.node("Reshape", value, shape_of(graph, (n_columns,)))
