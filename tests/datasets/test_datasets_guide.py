"""The blocks of the page on datasets that need the weather data."""

import re
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "datasets.md"


def test_the_code_with_weather_data_runs_and_its_shapes_are_true(meteo_dir, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(meteo_dir))
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 2
    names = {}
    for block in blocks:
        exec(block, names)
        for expression, expected in re.findall(r"^(\S.*?)  # ([(\[].*?[)\]])(?::|$)", block, re.M):
            assert eval(expression, names) == eval(expected)
