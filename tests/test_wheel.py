"""What is installed: the library alone, which does what the README says without any extra."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")
# What the first example of the README promises, and where the code that kept it came from.
PROMISES = """
import importlib.util
import holrr

assert model.rank_ == (3, 3, 2, 2), model.rank_
assert model.predict(X[150:]).shape == (50, 12, 8, 6)
for extra in ("matplotlib", "rich", "pandas", "dask", "h5py", "zarr", "pytest"):
    assert importlib.util.find_spec(extra) is None, extra
print(holrr.__file__)
"""


def python(executable, *words, cwd):
    """Output of a command that knows nothing of this checkout."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [str(executable), *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    python(sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.slow
def test_the_wheel_holds_the_library_only(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"holrr", next(top for top in tops if top.endswith(".dist-info"))}
    in_wheel = {name for name in names if name.startswith("holrr/")}
    source = ROOT / "src"
    assert in_wheel == {
        path.relative_to(source).as_posix()
        for path in (source / "holrr").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert not [name for name in in_wheel if re.search(r"tests?/|test_|experiments|paper", name)]


@pytest.mark.slow
def test_without_extras_the_first_example_of_the_readme_runs(wheel, tmp_path):
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "example.py").write_text(example[1] + PROMISES, encoding="utf-8")
    python(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    clean = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    python(clean, *PIP, "install", wheel, cwd=tmp_path)
    used = python(clean, "-W", "error", "example.py", cwd=tmp_path)
    assert (tmp_path / "venv").resolve() in Path(used.strip()).resolve().parents
