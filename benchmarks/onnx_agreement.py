"""How far predictions of ONNX graphs are from `predict`, for every estimator.

    python benchmarks/onnx_agreement.py [--quick] [--write]

Fits the estimators of tests/registry.py behind a StandardScaler of numbers and a OneHotEncoder of
text, exports the pipelines and runs the graphs with onnxruntime. Prints a table of the largest
differences, relative to the largest prediction. Blocks of inputs and own inputs follow. With
--write the largest differences of the pipelines go into docs/onnx.md. Exits with an error where a
difference is above 1e-10 in float64 or 1e-5 in float32.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holrr
from holrr import HOLRR, HOLRRCV, to_onnx
from holrr.datasets import make_tensor_regression
from pages import paragraph, parse_options, write_section

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from registry import ROWS

TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
N = 300
Inputs = dict[str, np.ndarray]


def difference(graph: Any, inputs: Inputs, expected: Any) -> float:
    """The largest difference of predictions, relative to the largest of them."""
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=providers)
    (found,) = session.run(["Y"], inputs)
    expected = np.asarray(expected)
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def table_of(X: np.ndarray, dtype: str) -> pd.DataFrame:
    """Numbers in several units, and a column of text."""
    table = pd.DataFrame((20 + 5 * X).astype(dtype), columns=list("abcde"))
    return table.assign(place=np.resize(["Durham", "Lerwick", "Oxford"], len(X)))


def columns_of(table: pd.DataFrame) -> Inputs:
    numbers = {name: table[[name]].to_numpy() for name in "abcde"}
    return numbers | {"place": table[["place"]].to_numpy(dtype=object)}


def pipelines(
    X: np.ndarray, Y: np.ndarray, n_estimators: int | None = None
) -> Iterator[tuple[str, list[float]]]:
    """Each estimator as the last step; those that cannot be exported give no numbers."""
    for row in ROWS[:n_estimators]:
        found = []
        for dtype in TOLERANCE:
            table = table_of(X, dtype)
            columns = ColumnTransformer(
                [("number", StandardScaler(), list("abcde")), ("text", OneHotEncoder(), ["place"])]
            )
            pipeline = make_pipeline(columns, row.make()).fit(table, Y)
            try:
                graph = to_onnx(pipeline, table[:5], dtype=dtype)
            except ValueError as error:
                if "cannot be exported" not in str(error):
                    raise
                break
            found.append(difference(graph, columns_of(table), pipeline.predict(table)))
        yield row.id, found


def blocks(X: np.ndarray, Y: np.ndarray) -> Iterator[tuple[str, list[float]]]:
    """Blocks of inputs with their own penalties, and own inputs."""
    field = np.random.default_rng(0).normal(size=(N, *Y.shape[1:]))
    whole = {"field": field, "index": X}
    models = {
        "blocks, HOLRR": (HOLRR(2, alpha={"field": 0.5, "index": 2.0}), whole),
        "blocks, HOLRRCV": (HOLRRCV(cv=3, blocks="auto"), whole),
        "own inputs": (HOLRR(2, own=[(0, 0), (1, 1)], own_alpha=0.1), {"X": field}),
    }
    for name, (model, inputs) in models.items():
        one = inputs["X"] if len(inputs) == 1 else inputs
        model.fit(one, Y)
        found = []
        for dtype in TOLERANCE:
            narrow = {key: A.astype(dtype) for key, A in inputs.items()}
            expected = model.predict(narrow["X"] if len(inputs) == 1 else narrow)
            found.append(difference(to_onnx(model, dtype=dtype), narrow, expected))
        yield name, found


def largest(rows: Iterator[tuple[str, list[float]]]) -> dict[str, float]:
    """Print the rows of the table, and return the largest difference of each type."""
    worst = dict.fromkeys(TOLERANCE, 0.0)
    for name, found in rows:
        cells = [f"{value:.0e}" for value in found] or ["refused", "refused"]
        print(f"| `{name}` | {' | '.join(cells)} |", flush=True)
        for dtype, value in zip(TOLERANCE, found, strict=False):
            worst[dtype] = max(worst[dtype], value)
    return worst


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three estimators in pipelines")
    options = parse_options(parser, arguments)
    warnings.simplefilter("ignore")
    print(f"holrr {holrr.__version__}, onnxruntime {onnxruntime.__version__}\n")
    print("| | float64 | float32 |\n|:--|--:|--:|")
    X, Y = make_tensor_regression(N, 5, (3, 4), rank=2, snr=2, random_state=0)
    worst = largest(pipelines(X, Y, 3 if options.quick else None))
    of_blocks = largest(blocks(X, Y))
    values = " and ".join(f"{value:.0e} in {dtype}" for dtype, value in worst.items())
    text = paragraph(f"The largest differences in these pipelines are {values}.")
    print(f"\n{text}", end="")
    if options.write:
        write_section("agreement of graphs", text)
    return int(any(max(worst[t], of_blocks[t]) > TOLERANCE[t] for t in TOLERANCE))


if __name__ == "__main__":
    sys.exit(main())
