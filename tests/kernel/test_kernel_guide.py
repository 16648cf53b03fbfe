"""The code of the guide to kernels."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "kernels.md"


@pytest.mark.filterwarnings("ignore:The best penalty")
def test_code_of_the_kernel_guide_runs_and_its_comments_are_right():
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 5
    names, checked = {}, 0
    for block in blocks:
        exec(block, names)
        for expression, expected in re.findall(r"^([a-z\[].*?)  # (.*)$", block, re.M):
            assert eval(expression, names) == eval(expected), expression
            checked += 1
    assert checked == 9
