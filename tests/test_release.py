"""What a release says of itself agrees: versions, bounds, citation, hooks, commands."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from holrr import __version__
from test_architecture import FILES

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# What a user may install; the others are for those who work on the library.
OURS = re.fullmatch(r"holrr\[(.*)\]", EXTRAS["all"][0])[1].split(",")
# Names of modules that differ from those of their packages.
MODULES = {"scikit-learn": "sklearn", "array-api-compat": "array_api_compat"}


def bounds():
    """The lowest version of every dependency, extras included."""
    lines = [*PROJECT["dependencies"], *(line for extra in OURS for line in EXTRAS[extra])]
    found = {}
    for requirement in map(Requirement, lines):
        (lowest,) = (s.version for s in requirement.specifier if s.operator == ">=")
        assert found.setdefault(requirement.name, Version(lowest)) == Version(lowest)
    return found


def test_the_extra_for_xarray_has_the_calendars_of_climate_models():
    """Files whose calendar is not ours cannot be opened without cftime."""
    names = {Requirement(line).name for line in EXTRAS["xarray"]}
    assert {"xarray", "h5netcdf", "cftime"} <= names


def test_the_lowest_versions_that_are_tested_are_those_that_are_allowed():
    lines = (ROOT / "constraints" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    pinned.pop("pyparsing")  # of matplotlib
    assert {name: Version(version) for name, version in pinned.items()} == bounds()


def test_what_is_imported_at_once_is_a_dependency():
    names = {
        MODULES.get(line.name, line.name) for line in map(Requirement, PROJECT["dependencies"])
    }
    nodes = [node for path in FILES for node in ast.parse(path.read_text()).body]
    found = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    found |= {n.module for n in nodes if isinstance(n, ast.ImportFrom) and not n.level}
    found = {name.partition(".")[0] for name in found}
    later = {"skops"}  # imported where files are written and read
    assert found - set(sys.stdlib_module_names) - {"holrr"} == names - later


def test_the_pythons_that_are_named_are_allowed_and_tested():
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    tested = re.search(r"python: \[(.*?)\]", workflow)[1].replace('"', "").split(", ")
    assert named == tested
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert not [line for line in PROJECT["classifiers"] if line.startswith("License")]


def test_version_changelog_and_citation_agree():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == __version__
    assert cited["license"] == PROJECT["license"]
    assert cited["preferred-citation"]["title"] == "Higher-Order Low-Rank Regression"
    newest = re.search(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)[1]
    assert newest == __version__


def test_workflow_and_hooks_call_commands_that_exist():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert all(repo["repo"] == "local" for repo in hooks["repos"])  # nothing is fetched
    commands += [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]]
    words = [word for line in commands for word in line.split() if word != "--silent"]
    assert set(words) - {"make"} <= targets
    assert {"test", "test-lowest", "test-site", "dist", "lint", "typecheck"} <= set(words)
