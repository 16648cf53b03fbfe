"""The code of the guide to penalised models."""

import re
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "trace_norm_and_mlmtnc.md"


def test_code_of_the_penalised_guide_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 3
    names = {}
    exec(blocks[0], names)
    lines = capsys.readouterr().out.splitlines()
    scores = {line.split()[0]: float(line.split()[1]) for line in lines}
    assert scores["RLS"] < min(scores[name] for name in ("TraceNormRegressionCV", "MLMTNCCV"))
    exec(blocks[1], names)
    convex = names["model"]
    assert convex.objective_ / convex.lower_bound_ - 1 <= 1e-6
    assert convex.rank_ == (4, 4, 3)
    exec(blocks[2], names)
    assert eval("np.diff(model.history_).max() <= 0", names)
    norms = eval("[np.linalg.norm(B) for B in (model.core_, *model.factors_)]", names)
    assert max(norms) < 1.001 * min(norms)
