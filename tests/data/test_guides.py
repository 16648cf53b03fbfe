"""The code of the guides runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


GUIDES = [
    ("streaming.md", 7),
    ("sparse.md", 1),
    ("file_format.md", 3),
    ("missing.md", 3),
]
# The three searches of the page take ten seconds: coarser maps and two folds do here.
SMALLER = {
    "missing.md": {
        "np.linspace(-1, 1, 30)": "np.linspace(-1, 1, 12)",
        "np.linspace(-1, 1, 40)": "np.linspace(-1, 1, 16)",
        "np.linspace(-1.4, 1.4, 30)": "np.linspace(-1.4, 1.4, 12)",
        "HOLRRCV(missing=": "HOLRRCV(cv=2, missing=",
    }
}


@pytest.mark.filterwarnings("ignore:The best penalty")
@pytest.mark.parametrize(("guide", "n_blocks"), GUIDES)
def test_the_code_of_the_guide_runs(guide, n_blocks, tmp_path, monkeypatch):
    for extra in ("dask.array", "distributed", "zarr"):
        pytest.importorskip(extra, reason=f"{extra} is not installed")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / guide).read_text(), flags=re.DOTALL)
    assert len(blocks) == n_blocks
    code = "\n".join(blocks)
    for large, small in SMALLER.get(guide, {}).items():
        assert large in code
        code = code.replace(large, small)
    exec(code, {"__name__": "__main__"})
