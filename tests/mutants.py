"""Break lines of the library at random, one at a time, and run the tests that cover them.

    python tests/mutants.py cover               # which test covers which line; words go to pytest
    python tests/mutants.py break --number 200 --seed 0 --jobs 2
    python tests/mutants.py break --again       # only those that survived, with the tests as now

`cover` runs the tests once and adds what they cover to `build/mutants`. `break` draws executable
lines and a mutation of each: of a comparison, an operator, a number, an argument, a condition, a
statement or a returned value. Every mutant is a change of one file in a copy of the tree. The tests
that cover the line run in it, the fastest first, until one fails. A test that takes more than
ten times as long as before fails, too. Results are stored after each mutant, so that the command
continues where it was interrupted.

Texts of messages, docstrings, annotations, decorators, imports and the parts of the library in
`EXCLUDED` are not changed.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "holrr"
BUILD = ROOT / "build" / "mutants"
COVERAGE, TIMES, RESULTS = (BUILD / name for name in ("coverage", "times.json", "results.jsonl"))
EXCLUDED = ("plotting/", "cli/", "report/", "demo.py", "progress.py", "datasets/_images.py")

# ---------------------------------------------------------------- pytest plugin

CHOSEN = os.environ.get("HOLRR_CHOSEN_TESTS")  # a file with names of tests and their seconds
SECONDS: dict[str, float] = {}
FAILED: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    SECONDS[report.nodeid] = SECONDS.get(report.nodeid, 0.0) + report.duration
    if not report.passed or hasattr(report, "wasxfail"):
        FAILED.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if CHOSEN is None and not hasattr(session.config, "workerinput"):
        known = json.loads(TIMES.read_text()) if TIMES.exists() else {}
        known |= {name: time for name, time in SECONDS.items() if name not in FAILED}
        TIMES.write_text(json.dumps(known, indent=0))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHOSEN is not None:
        chosen = json.loads(Path(CHOSEN).read_text())
        items[:] = [item for item in items if item.nodeid in chosen]
        items.sort(key=lambda item: chosen[item.nodeid])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if CHOSEN is not None:  # the signal ends the process
        signal.alarm(30 + int(10 * json.loads(Path(CHOSEN).read_text())[item.nodeid]))
    return (yield)


# ---------------------------------------------------------------- mutations


@dataclass(frozen=True)
class Mutant:
    file: str  # relative to the package
    line: int
    before: str
    after: str
    start: int  # bytes of the file that are replaced
    end: int


OPERATORS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def changed(node: ast.AST, **fields: object) -> ast.AST:
    new = deepcopy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def mutations(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that can take the place of a node."""
    match node:
        case ast.Compare(ops=[op, *others]) if type(op) in OPERATORS:
            yield changed(node, ops=[OPERATORS[type(op)](), *others])
        case ast.BinOp(op=ast.MatMult()):
            yield changed(node, left=node.right, right=node.left)
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OPERATORS:
            yield changed(node, op=OPERATORS[type(op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield changed(node, value=not node.value)
        case ast.Constant(value=int() | float()):
            yield changed(node, value=node.value + 1)
        case ast.IfExp(test=test):
            yield changed(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.Call(args=args, keywords=keywords):
            if len(args) > 1 and not any(isinstance(a, ast.Starred) for a in args[:2]):
                yield changed(node, args=[args[1], args[0], *args[2:]])
                yield changed(node, args=args[:-1])
            if keywords:
                yield changed(node, keywords=keywords[:-1])
        case ast.Return(value=ast.expr()):
            yield ast.Return(ast.Constant(None))
        case ast.Expr() | ast.Assign() | ast.AugAssign() | ast.Raise() | ast.Continue():
            yield ast.Pass()


def negations(node: ast.AST) -> Iterator[ast.expr]:
    """Conditions of statements, which are replaced by their negation."""
    if isinstance(node, (ast.If, ast.While)):
        yield node.test
    if isinstance(node, ast.comprehension):
        yield from node.ifs


# Fields that are not changed: what a user does not compute with.
SKIPPED = {"annotation", "returns", "decorator_list", "exc", "cause", "msg", "bases", "type_params"}


def nodes_of(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those below it, without texts, annotations and imports."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.JoinedStr() | ast.Constant(value=str()):
            return
        case ast.Expr(value=ast.Constant()):  # a docstring, or an ellipsis
            return
        case ast.Assign(targets=[ast.Name(id="__all__" | "TYPE_CHECKING")]):
            return
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if "warn" in name:
            return
    yield node
    for field, value in ast.iter_fields(node):
        if field not in SKIPPED:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from nodes_of(child)


def mutants_of(path: Path) -> Iterator[Mutant]:
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def mutant(old: ast.AST, new: ast.AST) -> Mutant:
        start = starts[old.lineno - 1] + old.col_offset
        end = starts[old.end_lineno - 1] + old.end_col_offset
        after = ast.unparse(ast.fix_missing_locations(new))
        after = f"({after})" if isinstance(old, ast.expr) else after
        before = source[start:end].decode()
        return Mutant(path.relative_to(PACKAGE).as_posix(), old.lineno, before, after, start, end)

    for node in nodes_of(ast.parse(source)):
        yield from (mutant(node, new) for new in mutations(node))
        yield from (mutant(old, ast.UnaryOp(ast.Not(), old)) for old in negations(node))


def sample(number: int, seed: int) -> list[Mutant]:
    """Mutants of lines that are drawn with equal probability, and of different lines."""
    lines: dict[tuple[str, int], list[Mutant]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.relative_to(PACKAGE).as_posix().startswith(EXCLUDED):
            for one in mutants_of(path):
                lines.setdefault((one.file, one.line), []).append(one)
    rng = random.Random(seed)
    return [rng.choice(lines[line]) for line in rng.sample(sorted(lines), number)]


# ---------------------------------------------------------------- which tests cover a line


class Covered:
    """Names and seconds of the tests that cover a line."""

    def __init__(self) -> None:
        from coverage import CoverageData

        self.data, self.times = CoverageData(str(COVERAGE)), json.loads(TIMES.read_text())
        self.data.read()

    def tests(self, mutant: Mutant) -> dict[str, float]:
        path = PACKAGE / mutant.file
        by_line = self.data.contexts_by_lineno(str(path))
        for first, last in spans(ast.parse(path.read_bytes()), mutant.line):
            names = {
                name.rpartition("|")[0]
                for line in range(first, last + 1)
                for name in by_line.get(line, ())
            }
            if found := {name: self.times[name] for name in names if name in self.times}:
                return found
        return {}


def spans(tree: ast.AST, line: int) -> list[tuple[int, int]]:
    """The line, and the statements around it: a line that imports run has no test of its own."""
    around = [
        (node.lineno, node.end_lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno
    ]
    return [(line, line), *sorted(around, key=lambda span: span[1] - span[0]), (1, 10**6)]


# ---------------------------------------------------------------- runs


def environment(root: Path, **others: str) -> dict[str, str]:
    path = os.pathsep.join(str(root / name) for name in ("src", "tests"))
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, **others}


def cover(words: list[str]) -> int:
    BUILD.mkdir(parents=True, exist_ok=True)
    given = [f"--cov={PACKAGE}", "--cov-append", "--cov-context=test", "--cov-report="]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "mutants", *given, *words]
    return subprocess.run(
        command, cwd=ROOT, env=environment(ROOT, COVERAGE_FILE=str(COVERAGE)), check=False
    ).returncode


def copied() -> Path:
    """A copy of the files of the tree, without those that git ignores."""
    root = Path(tempfile.mkdtemp(prefix="mutants-"))
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(listed, cwd=ROOT, text=True).splitlines():
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
    return root


def outcome(mutant: Mutant, tests: dict[str, float], root: Path, seconds: float) -> str:
    """The test that catches a mutant, or how many tests it survives."""
    chosen, spent = {}, 0.0
    for name, duration in sorted(tests.items(), key=lambda item: item[1]):
        spent += duration
        if spent < seconds or not chosen:
            chosen[name] = duration
    if not chosen:
        return "survived: no test covers it"
    (root / "chosen.json").write_text(json.dumps(chosen))
    files = sorted({name.partition("::")[0] for name in chosen})
    path = root / "src" / "holrr" / mutant.file
    source, times = path.read_bytes(), path.stat()
    path.write_bytes(source[: mutant.start] + mutant.after.encode() + source[mutant.end :])
    later = times.st_mtime + random.SystemRandom().randrange(10**6)  # compiled files are outdated
    os.utime(path, (later, later))
    command = [sys.executable, "-m", "pytest", "-p", "mutants", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, "-n", "0", "-x", "-q", "--tb=no", "-rfE", "-W", "ignore", *files],
            cwd=root,
            env=environment(root, HOLRR_CHOSEN_TESTS=str(root / "chosen.json")),
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        path.write_bytes(source)
        os.utime(path, (times.st_atime, times.st_mtime))
    if done.returncode == 0:
        return f"survived {len(chosen)} of {len(tests)} tests"
    if done.returncode < 0:
        return f"caught: ended by signal {-done.returncode}"
    found = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", done.stdout, re.M)
    return f"caught by {found[1]}" if found else f"caught: {(done.stderr or done.stdout)[-200:]}"


def break_lines(options: argparse.Namespace) -> int:
    covered, roots, results = Covered(), SimpleQueue(), {}
    for line in RESULTS.read_text().splitlines() if RESULTS.exists() else []:
        row = json.loads(line)
        results[Mutant(**row["mutant"])] = row["outcome"]
    mutants = sample(options.number, options.seed)
    copies = [copied() for _ in range(options.jobs)]
    for root in copies:
        roots.put(root)

    end = time.monotonic() + 60 * options.minutes

    def run(mutant: Mutant) -> None:
        if time.monotonic() > end:
            return
        root = roots.get()
        said = outcome(mutant, covered.tests(mutant), root, options.seconds)
        roots.put(root)
        results[mutant] = said
        with RESULTS.open("a") as file:
            file.write(json.dumps({"mutant": asdict(mutant), "outcome": said}) + "\n")

    def is_open(mutant: Mutant) -> bool:
        return mutant not in results or (options.again and results[mutant].startswith("survived"))

    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(run, filter(is_open, mutants)))
    finally:
        for root in copies:
            shutil.rmtree(root)
    for k, one in enumerate(mutants):
        change = " -> ".join(" ".join(text.split()) for text in (one.before, one.after))
        print(f"{k:3} | {one.file}:{one.line} | {change} | {results.get(one, 'not run')}")
    survived = sum(results.get(one, "").startswith("survived") for one in mutants)
    print(f"{len(mutants)} mutants, {len(results.keys() & mutants)} run, {survived} survived")
    return 0


def main(words: list[str]) -> int:
    if words[:1] == ["cover"]:
        return cover(words[1:])
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["cover", "break"])
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=120, help="of tests for each mutant")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no mutant after these")
    parser.add_argument("--again", action="store_true", help="run the survivors again")
    return break_lines(parser.parse_args(words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
