"""Graphs of ONNX operators, to which the nodes of a model are added.

The functions that write a model call `Graph.constant` and `Graph.node`. `Nodes` collects nodes for
a graph of this library; the converters for skl2onnx add nodes to its container in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

__all__ = ["OPSET", "Graph", "Nodes", "cast", "flatten", "shape_of"]

# Lowest version of the operators in which all nodes are valid; they are also valid in later ones.
OPSET = 13


class Graph(Protocol):
    """A graph to which nodes are added. Values in a graph are identified by their names."""

    def constant(self, values: Any) -> str:
        """Store an array in the graph, and return its name."""
        ...

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node, and return the name of its output."""
        ...


@dataclass
class Nodes:
    """Nodes and constants of a graph, as protocol buffers.

    Parameters
    ----------
    helper, numpy_helper : modules of onnx
    taken : set of str
        Names in use: those of inputs and outputs, and of all constants and nodes that are added.
    """

    helper: Any
    numpy_helper: Any
    taken: set[str]
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def constant(self, values: Any) -> str:
        """Store an array in the graph, and return its name."""
        name = self._name("constant")
        array = np.ascontiguousarray(values).reshape(np.shape(values))
        self.constants.append(self.numpy_helper.from_array(array, name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node, and return the name of its output."""
        name = self._name(operator.lower())
        self.nodes.append(self.helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def end(self, value: str, name: str) -> None:
        """Give a value the name of an output."""
        self.nodes.append(self.helper.make_node("Identity", [value], [name], name=f"{name}_end"))

    def _name(self, what: str) -> str:
        number = len(self.nodes) + len(self.constants)
        while f"{what}_{number}" in self.taken:
            number += 1
        self.taken.add(f"{what}_{number}")
        return f"{what}_{number}"


def cast(graph: Graph, value: str, dtype: np.dtype) -> str:
    """Cast a value to a floating-point type."""
    from onnx.helper import np_dtype_to_tensor_dtype

    return graph.node("Cast", value, to=int(np_dtype_to_tensor_dtype(np.dtype(dtype))))


def shape_of(graph: Graph, sizes: Sequence[int]) -> str:
    """Add a shape with an unknown number of samples as a constant, and return its name."""
    return graph.constant(np.array([-1, *sizes], dtype=np.int64))


def flatten(graph: Graph, value: str, n_columns: int) -> str:
    """Reshape a value with samples along its first axis to a matrix of `n_columns` columns."""
    return graph.node("Reshape", value, shape_of(graph, (n_columns,)))
