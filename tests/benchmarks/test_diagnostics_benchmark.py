"""The benchmark of diagnostics runs, and measures fits with and without the model of the inputs."""

import sys
from pathlib import Path

import numpy as np

from holrr import RLS
from holrr.data.validation import Names

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import diagnostics


def test_every_part_is_measured(capsys):
    diagnostics.main(["--quick"])
    said = capsys.readouterr().out
    blocks = [block.splitlines() for block in said.strip().split("\n\n")]
    parts = dict(zip([block[0] for block in blocks[::2]], blocks[1::2], strict=True))
    assert list(parts) == list(diagnostics.PARTS)
    for rows in parts.values():
        assert len(rows) > 3 or "rows" in rows[0]
        assert len({row.count("|") for row in rows}) == 1


def test_fits_without_the_model_of_the_inputs_have_none():
    X = np.random.default_rng(0).normal(size=(30, 4))
    original = Names.with_input_model
    model = diagnostics.without_model(lambda: RLS().fit(X, X[:, 0]))()
    assert "_input_model" not in vars(model)
    assert Names.with_input_model is original
    assert "_input_model" in vars(RLS().fit(X, X[:, 0]))


def test_the_usual_limits_are_exceeded_too_often():
    rng = np.random.default_rng(0)
    found = diagnostics.usual_limits(rng.normal(size=(200, 20)), rng.normal(size=(4000, 20)))
    assert found[0, 1] > 0.12
