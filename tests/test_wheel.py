"""What is released: an archive, the wheel made from it, and what it does in a clean environment."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from holrr import __version__

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

USE = """
import numpy as np
import holrr

reveal_type(holrr.Moments.from_arrays(np.ones((3, 2)), np.ones((3, 4))))
reveal_type(holrr.__version__)
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
def dist(tmp_path_factory):
    """What `make dist` makes: the archive, and the wheel from the archive."""
    for tool in ("build", "twine"):
        pytest.importorskip(tool, reason=f"{tool} is not installed")
    folder = tmp_path_factory.mktemp("dist")
    python(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(dist):
    (wheel,) = dist.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def clean(wheel, tmp_path_factory):
    """A Python that has the wheel and what it needs, no extra."""
    folder = tmp_path_factory.mktemp("clean")
    python(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    clean = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    python(clean, *PIP, "install", wheel, cwd=folder)
    return clean


@pytest.mark.clean_environment
def test_the_built_files_pass_the_checks_of_the_package_index(dist):
    found = sorted(path.name for path in dist.iterdir())
    assert found == [f"holrr-{__version__}-py3-none-any.whl", f"holrr-{__version__}.tar.gz"]
    told = python(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir(), cwd=dist)
    assert told.count("PASSED") == 2
    (wheel,) = dist.glob("*.whl")
    (metadata,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("METADATA"))
    text = zipfile.ZipFile(wheel).read(metadata).decode()
    shown = text.partition("\n\n")[2]
    assert shown.startswith("# holrr\n")
    assert "](" not in shown  # no link or picture that leads nowhere on an index
    assert "## Where to go" in shown


@pytest.mark.clean_environment
def test_the_archive_holds_what_is_needed_to_test_it(dist):
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    needed = ("LICENSE", "README.md", "CITATION.cff", "SECURITY.md", "constraints/lowest.txt")
    assert names >= {*needed, "src/holrr/py.typed", "tests/test_wheel.py", "docs/pictures.py"}


@pytest.mark.clean_environment
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


@pytest.mark.clean_environment
def test_without_extras_the_first_example_of_the_readme_runs(clean, tmp_path):
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "example.py").write_text(example[1] + PROMISES, encoding="utf-8")
    used = python(clean, "-W", "error", "example.py", cwd=tmp_path)
    assert clean.parents[1].resolve() in Path(used.strip()).resolve().parents


@pytest.mark.clean_environment
def test_a_type_checker_sees_the_types_of_the_installed_library(clean, tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    (tmp_path / "use.py").write_text(USE, encoding="utf-8")
    words = ("-m", "mypy", "--python-executable", clean, "--cache-dir", tmp_path, "use.py")
    told = python(sys.executable, *words, cwd=tmp_path)
    assert 'Revealed type is "holrr.streaming.moments.Moments"' in told
    assert 'Revealed type is "str"' in told.replace("builtins.", "")
