"""The code of the guide runs as it stands, and its picture is there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "standard_errors.md"


def test_the_code_of_the_guide_runs():
    pytest.importorskip("xarray")
    pytest.importorskip("matplotlib").use("Agg")
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 4
    names = {}
    for block in blocks:
        exec(block, names)
    marked = names["errors"].coef.significant()
    assert marked[:, 10, 10].tolist() == [True, False, True, False]
    assert marked[3].mean() < 0.05
    assert names["errors"].n_groups == names["by_week"].n_groups == 20
    assert np.all(names["by_week"].weights % 7 <= 3)
    for image in re.findall(r"\((images/.*?)\)", GUIDE.read_text()):
        assert (GUIDE.parent / image).stat().st_size > 1000
