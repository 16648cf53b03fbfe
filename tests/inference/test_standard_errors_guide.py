"""The code of the guide runs, and its pictures exist."""

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
    assert len(blocks) == 5
    names = {}
    for block in blocks:
        exec(block, names)
    marked = names["errors"].coef.significant()
    assert marked[:, 10, 10].tolist() == [True, False, True, False]
    assert marked[3].mean() < 0.05
    assert names["errors"].n_groups == names["by_week"].n_groups == 20
    assert np.all(names["by_week"].weights % 7 <= 3)
    held_out = names["B"][150:]
    assert names["interval_coverage"](held_out, names["low"], names["high"]) == pytest.approx(
        0.9, abs=0.02
    )
    for image in re.findall(r"\((images/.*?)\)", GUIDE.read_text()):
        assert (GUIDE.parent / image).stat().st_size > 1000
