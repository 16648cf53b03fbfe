"""The code of the guide runs and says the truth."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "kernels.md"


@pytest.mark.filterwarnings("ignore:the best penalty")
def test_the_code_of_the_kernel_guide_runs_and_its_comments_are_true():
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 5
    names, checked = {}, 0
    for block in blocks:
        exec(block, names)
        for expression, expected in re.findall(r"^([a-z\[].*?)  # (.*)$", block, re.M):
            assert eval(expression, names) == eval(expected), expression
            checked += 1
    assert checked == 9
