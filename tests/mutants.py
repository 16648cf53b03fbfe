"""Break lines of the library at random, one at a time, and run the tests that cover them.

    python tests/mutants.py cover                # which test covers which line, and its seconds
    python tests/mutants.py break --number 200 --seed 0 --jobs 2
    python tests/mutants.py break --again        # those that survived, with the tests as now

`cover` adds what one run of the tests covers to `build/mutants`; other words go to pytest. `break`
draws executable lines and a mutation of each, and applies it in a copy of the tree. The tests that
cover the line run there, the fastest first, until one fails. A test that hangs fails, too. Results
are stored after each mutant, and the command continues after them. Texts, annotations, decorators,
imports and the parts in `EXCLUDED` are not changed.
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
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "holrr"
BUILD = ROOT / "build" / "mutants"
COVERAGE, TIMES, RESULTS = (BUILD / name for name in ("coverage", "times.json", "results.jsonl"))
EXCLUDED = ("plotting/", "cli/", "report/", "demo.py", "progress.py", "datasets/_images.py")

# ---------------------------------------------------------------- plugin of pytest

CHOSEN = json.loads(os.environ.get("HOLRR_CHOSEN_TESTS", "null"))  # names of tests -> seconds
PASSED: dict[str, float] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
        PASSED[report.nodeid] = report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    if CHOSEN is None and not hasattr(session.config, "workerinput"):
        before = json.loads(TIMES.read_text()) if TIMES.exists() else {}
        TIMES.write_text(json.dumps(before | PASSED, indent=0))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHOSEN is not None:
        items[:] = [item for item in items if item.nodeid in CHOSEN]
        items.sort(key=lambda item: CHOSEN[item.nodeid])


def pytest_runtest_setup(item: pytest.Item) -> None:
    if CHOSEN is not None:
        signal.alarm(60 + int(10 * CHOSEN[item.nodeid]))  # which ends the process


# ---------------------------------------------------------------- mutations


@dataclass(frozen=True)
class Mutant:
    file: str  # relative to the package
    line: int
    before: str
    after: str
    start: int  # first and last byte that are replaced
    end: int


PAIRS = [
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div),
    (ast.BitAnd, ast.BitOr),
    (ast.And, ast.Or),
]
OTHER = (
    dict(PAIRS)
    | {b: a for a, b in PAIRS}
    | dict.fromkeys((ast.FloorDiv, ast.Mod, ast.Pow), ast.Mult)
)


def changed(node: ast.AST, **fields: object) -> ast.AST:
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


def mutations(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Nodes, and what can take their place."""
    match node:
        case ast.Compare(ops=[op, *others]):
            yield node, changed(node, ops=[OTHER[type(op)](), *others])
        case ast.BinOp(op=ast.MatMult()):
            yield node, changed(node, left=node.right, right=node.left)
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OTHER:
            yield node, changed(node, op=OTHER[type(op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node, node.operand
        case ast.Constant(value=bool()):
            yield node, ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield node, ast.Constant(node.value + 1)
        case ast.Call(args=args, keywords=keywords):
            if len(args) > 1 and not any(isinstance(a, ast.Starred) for a in args[:2]):
                yield node, changed(node, args=[args[1], args[0], *args[2:]])
                yield node, changed(node, args=args[:-1])
            if keywords:
                yield node, changed(node, keywords=keywords[:-1])
        case ast.IfExp(test=test):
            yield node, changed(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.If(test=test) | ast.While(test=test):
            yield test, ast.UnaryOp(ast.Not(), test)
        case ast.comprehension(ifs=ifs):
            yield from ((test, ast.UnaryOp(ast.Not(), test)) for test in ifs)
        case ast.Return(value=ast.expr()):
            yield node, ast.Return(ast.Constant(None))
        case ast.Expr() | ast.Assign() | ast.AugAssign() | ast.Raise() | ast.Continue():
            yield node, ast.Pass()


SKIPPED = {"annotation", "returns", "decorator_list", "exc", "cause", "msg"}


def nodes_of(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those below it, without texts, annotations and imports."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.JoinedStr() | ast.Constant(value=str()):
            return
        case ast.Expr(value=ast.Constant()) | ast.Assign(targets=[ast.Name(id="__all__")]):
            return
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if "warn" in name:
            return
    yield node
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and field not in SKIPPED:
                yield from nodes_of(child)


def mutants_of(path: Path) -> Iterator[Mutant]:
    file, source, starts = path.relative_to(PACKAGE).as_posix(), path.read_bytes(), [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in nodes_of(ast.parse(source)):
        for old, new in mutations(node):
            start = starts[old.lineno - 1] + old.col_offset
            end = starts[old.end_lineno - 1] + old.end_col_offset
            after = ast.unparse(ast.fix_missing_locations(new))
            after = f"({after})" if isinstance(old, ast.expr) else after
            yield Mutant(file, old.lineno, source[start:end].decode(), after, start, end)


def sample(number: int, seed: int) -> list[Mutant]:
    """One mutant of each of some lines, which are drawn with equal probability."""
    lines: dict[tuple[str, int], list[Mutant]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.relative_to(PACKAGE).as_posix().startswith(EXCLUDED):
            for one in mutants_of(path):
                lines.setdefault((one.file, one.line), []).append(one)
    rng = random.Random(seed)
    return [rng.choice(lines[line]) for line in rng.sample(sorted(lines), number)]


# ---------------------------------------------------------------- runs


def run_pytest(root: Path, words: list[str], **environment: str) -> subprocess.CompletedProcess:
    """Run pytest in a tree, with this module as plugin."""
    path = os.pathsep.join(str(root / name) for name in ("src", "tests"))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, **environment}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "mutants", *words]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)


def cover(words: list[str]) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    given = [f"--cov={PACKAGE}", "--cov-append", "--cov-context=test", "--cov-report="]
    print(run_pytest(ROOT, [*given, *words], COVERAGE_FILE=str(COVERAGE)).stdout)


def tests_of(mutant: Mutant, coverage: object, times: dict[str, float]) -> dict[str, float]:
    """Tests that cover a line, with their seconds, the fastest first.

    Lines that only imports run have those of the smallest statement around them that has some.
    """
    path = PACKAGE / mutant.file
    by_line = coverage.contexts_by_lineno(str(path))
    around = [
        range(node.lineno, node.end_lineno + 1)
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.stmt) and node.lineno <= mutant.line <= node.end_lineno
    ]
    for lines in [[mutant.line], *sorted(around, key=len), by_line]:
        names = {name.rpartition("|")[0] for line in lines for name in by_line.get(line, ())}
        if names & times.keys():
            return {name: times[name] for name in sorted(names & times.keys(), key=times.get)}
    return {}


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
    chosen: dict[str, float] = {}
    for name in tests:
        if not chosen or sum(chosen.values()) + tests[name] < seconds:
            chosen[name] = tests[name]
    if not chosen:
        return "survived: no test covers it"
    files = sorted({name.partition("::")[0] for name in chosen})
    path = root / "src" / "holrr" / mutant.file
    source, written = path.read_bytes(), path.stat().st_mtime
    path.write_bytes(source[: mutant.start] + mutant.after.encode() + source[mutant.end :])
    os.utime(path, 2 * (written + random.SystemRandom().randrange(10**6),))  # for compiled files
    words = ["-p", "no:cacheprovider", "-n", "0", "-x", "--tb=no", "-rfE", "-W", "ignore", *files]
    done = run_pytest(root, words, HOLRR_CHOSEN_TESTS=json.dumps(chosen))
    path.write_bytes(source)
    os.utime(path, (written, written))
    if done.returncode == 0:
        return f"survived {len(chosen)} of {len(tests)} tests"
    if done.returncode < 0:
        return f"caught: ended by signal {-done.returncode}"
    found = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", done.stdout, re.M)
    return f"caught by {found[1]}" if found else f"caught: {(done.stderr or done.stdout)[-200:]}"


def break_lines(options: argparse.Namespace) -> None:
    from coverage import CoverageData

    coverage, times, results = CoverageData(str(COVERAGE)), json.loads(TIMES.read_text()), {}
    coverage.read()
    for line in RESULTS.read_text().splitlines() if RESULTS.exists() else []:
        row = json.loads(line)
        results[Mutant(**row["mutant"])] = row["outcome"]
    mutants, copies = sample(options.number, options.seed), SimpleQueue()
    end = time.monotonic() + 60 * options.minutes

    def run(mutant: Mutant) -> None:
        known = results.get(mutant, "survived")
        if time.monotonic() > end or not known.startswith("survived"):
            return
        if mutant in results and not options.again:
            return
        root = copies.get()
        tests = tests_of(mutant, coverage, times)
        results[mutant] = outcome(mutant, tests, root, options.seconds)
        copies.put(root)
        with RESULTS.open("a") as file:
            row = {"mutant": asdict(mutant), "outcome": results[mutant]}
            file.write(json.dumps(row) + "\n")

    roots = [copied() for _ in range(options.jobs)]
    try:
        for root in roots:
            copies.put(root)
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(run, mutants))
    finally:
        for root in roots:
            shutil.rmtree(root)
    for k, one in enumerate(mutants):
        change = " -> ".join(" ".join(text.split()) for text in (one.before, one.after))
        print(f"{k:3} | {one.file}:{one.line} | {change} | {results.get(one, 'not run')}")
    survived = sum(results.get(one, "").startswith("survived") for one in mutants)
    print(f"{len(mutants)} mutants, {len(results.keys() & mutants)} run, {survived} survived")


def main(words: list[str]) -> None:
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
    main(sys.argv[1:])
