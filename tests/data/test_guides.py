"""The code of the guides runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


GUIDES = [
    ("file_format.md", 3),
]


@pytest.mark.filterwarnings("ignore:The best penalty")
@pytest.mark.parametrize(("guide", "n_blocks"), GUIDES)
def test_the_code_of_the_guide_runs(guide, n_blocks, tmp_path, monkeypatch):
    for extra in ("dask.array", "distributed", "zarr"):
        pytest.importorskip(extra, reason=f"{extra} is not installed")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / guide).read_text(), flags=re.DOTALL)
    assert len(blocks) == n_blocks
    code = "\n".join(blocks)
    exec(code, {"__name__": "__main__"})
