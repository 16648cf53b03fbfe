"""The code of the guide runs and its comments are true."""

import re
import warnings
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def test_the_code_of_the_metrics_guide_runs_and_its_comments_are_true():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 5
    names, checked = {}, 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in blocks:
            exec(block, names)
            for expression, expected in re.findall(r"^(\S.*?)  # ([TF3(\[].*)$", block, re.M):
                assert eval(expression, names) == eval(expected), expression
                checked += 1
    assert checked == 10
    matplotlib.pyplot.close("all")


def test_the_picture_of_the_guide_is_small():
    (picture,) = re.findall(r"!\[.*?\]\((.*?)\)", GUIDE.read_text())
    assert (GUIDE.parent / picture).stat().st_size < 150_000
