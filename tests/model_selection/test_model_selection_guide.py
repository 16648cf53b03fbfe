import re
import warnings
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "model_selection.md"


def test_the_code_of_the_guide_runs_and_its_shapes_are_true():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 9
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in blocks:
            exec(block, names)
            for expression, shape in re.findall(r"^(\S.*?)  # (\(.*?\))[:,]", block, re.M):
                assert eval(expression, names) == eval(shape)
    matplotlib.pyplot.close("all")


def test_the_pictures_of_the_guide_exist_and_are_small():
    for path in re.findall(r"!\[.*?\]\((.*?)\)", GUIDE.read_text()):
        assert (GUIDE.parent / path).stat().st_size < 150_000
