"""Run every benchmark in turn, and update the pages of the documentation.

    python benchmarks/all.py [--list] [--only NAME ...] [--quick] [--meteo FOLDER]

Each step is a script of its own, which is called with --write and then writes its tables into the
pages and its results into docs/results. A step whose data or hardware is missing is skipped with a
message that says how to get it. The output of all scripts goes to build/benchmarks/NAME.txt, from
which figures in sentences of the pages are copied by hand. With --quick every script runs on small
problems and no page is changed. ``python -m docs.pictures`` draws the pictures of stored results.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "build" / "benchmarks"
METEO = (
    "the station files of the Met Office: set HOLRR_METEO_DIR or --meteo to their folder, or "
    "download them with python -c 'from holrr.datasets import fetch_met_office as f; f()'"
)


@dataclass(frozen=True)
class Step:
    """A script, and what its figures are used for.

    Parameters
    ----------
    script : str
        Path of the script, or module, relative to the checkout.
    pages : str
        Pages that show its figures.
    arguments : tuple of str
        Arguments of both kinds of runs, beside --write or --quick.
    has_quick : bool
        Whether the script has a quick form. A step without one is left out of quick runs.
    needs : {"", "gpu", "meteo", "published", "tasks"}
        Data or hardware that not every machine has. "tasks" are the data of all tasks of
        real_data_tasks.py, which a full run needs.
    minutes : int
        Approximate time on two idle cores.
    """

    script: str
    pages: str
    arguments: tuple[str, ...] = ()
    has_quick: bool = True
    needs: str = ""
    minutes: int = 5

    @property
    def name(self) -> str:
        stem = self.script.removeprefix("paper.").removeprefix("benchmarks/").removesuffix(".py")
        return "-".join([stem, *(word.strip("-") for word in self.arguments)])

    @property
    def is_benchmark(self) -> bool:
        """Whether the script is one of this folder, with the options --write and --quick."""
        return self.script.startswith("benchmarks/")


TARGETS = "developer_benchmarks.md"
STEPS = [
    Step("benchmarks/table.py", TARGETS, minutes=20),
    Step("benchmarks/linear.py", f"README.md, benchmarks.md, {TARGETS}"),
    Step("benchmarks/kernel.py", f"README.md, benchmarks.md, {TARGETS}"),
    Step("benchmarks/model_selection.py", "model_selection.md, benchmarks.md", minutes=10),
    Step("benchmarks/labels.py", TARGETS),
    Step("benchmarks/missing.py", TARGETS, minutes=1),
    Step("benchmarks/competitors.py", f"trace_norm_and_mlmtnc.md, {TARGETS}", minutes=2),
    Step("benchmarks/inputs.py", f"benchmarks.md, {TARGETS}"),
    Step("benchmarks/blocks.py", f"benchmarks.md, {TARGETS}", needs="tasks", minutes=40),
    Step(
        "benchmarks/real_data.py",
        f"README.md, benchmarks.md, {TARGETS}",
        needs="tasks",
        minutes=20,
    ),
    Step("benchmarks/coverage.py", f"benchmarks.md, {TARGETS}", needs="tasks", minutes=20),
    Step("benchmarks/climatology.py", TARGETS, needs="meteo", minutes=10),
    Step("benchmarks/case_study.py", "case_study.md", needs="meteo", minutes=8),
    Step("benchmarks/when_it_helps.py", "when_it_helps.md"),
    Step("benchmarks/libraries.py", "comparison.md", minutes=45),
    Step("benchmarks/scaling.py", "scaling.md"),
    Step("benchmarks/standard_errors.py", "standard_errors.md", minutes=2),
    Step("benchmarks/streaming.py", f"streaming.md, {TARGETS}", minutes=10),
    Step("benchmarks/cluster.py", "scaling.md, streaming.md", minutes=10),
    Step("benchmarks/sparse_inputs.py", "sparse.md"),
    Step("benchmarks/forgetting.py", "streaming.md", minutes=2),
    Step("benchmarks/onnx_agreement.py", "onnx.md", minutes=2),
    Step("benchmarks/onnx_latency.py", "onnx.md", minutes=2),
    Step("benchmarks/robust.py", "robust.md"),
    Step("benchmarks/diagnostics.py", "diagnostics.md"),
    Step("benchmarks/table.py", f"benchmarks.md, {TARGETS}", ("--gpu",), needs="gpu"),
    Step("benchmarks/agreement.py", TARGETS, needs="gpu"),
    Step("paper.forecasts", "published.md", has_quick=False, needs="published", minutes=30),
]


def missing(step: Step, quick: bool, meteo: str | None) -> str:
    """Return what a step lacks on this machine; empty if it can run."""
    if step.needs == "tasks" and not quick:
        from real_data_tasks import TASKS, set_meteo_folder, unavailable

        set_meteo_folder(meteo)
        lacking = unavailable(TASKS)
        return f"the data of all tasks, also of {lacking}" if lacking else ""
    if step.needs == "meteo" and not (meteo and Path(meteo).is_dir()):
        return METEO
    if step.needs == "published":
        folder = os.environ.get("HOLRR_PUBLISHED_DIR")
        if not (folder and Path(folder).is_dir()):
            return "the published series: see docs/published.md, and set HOLRR_PUBLISHED_DIR"
    if step.needs == "gpu":
        if importlib.util.find_spec("torch") is None:
            return "torch with CUDA: pip install torch"
        import torch

        if not torch.cuda.is_available():
            return "a CUDA device"
    return ""


def command(step: Step, quick: bool, meteo: str | None) -> list[str]:
    """Return the command line of a step."""
    if not step.is_benchmark:
        return [sys.executable, "-m", "paper", step.name, *step.arguments]
    kind = "--quick" if quick else "--write"
    words = [sys.executable, str(ROOT / step.script), *step.arguments, kind]
    return [*words, "--meteo", meteo] if step.needs in ("meteo", "tasks") and meteo else words


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true", help="list the steps and their pages")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run these steps only")
    parser.add_argument("--quick", action="store_true", help="small problems, no page is changed")
    parser.add_argument("--meteo", default=os.environ.get("HOLRR_METEO_DIR"), metavar="FOLDER")
    options = parser.parse_args(arguments)
    steps = {step.name: step for step in STEPS}
    unknown = sorted(set(options.only or ()) - set(steps))
    if unknown:
        parser.error(f"--only: unknown steps {', '.join(unknown)}; known are {', '.join(steps)}")
    chosen = [step for name, step in steps.items() if not options.only or name in options.only]
    if options.list:
        for step in chosen:
            print(f"{step.name:16} {step.minutes:3} min  {step.pages}")
        return 0
    OUTPUT.mkdir(parents=True, exist_ok=True)
    failed = []
    for step in chosen:
        lacks = missing(step, options.quick, options.meteo)
        if lacks or (options.quick and not step.has_quick):
            print(f"{step.name:16} skipped: {f'needs {lacks}' if lacks else 'no quick form'}")
            continue
        print(f"{step.name:16} ...", end="", flush=True)
        start = time.perf_counter()
        with (OUTPUT / f"{step.name}.txt").open("w", encoding="utf-8") as file:
            words = command(step, options.quick, options.meteo)
            done = subprocess.run(words, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)
        seconds = time.perf_counter() - start
        state = "done" if done.returncode == 0 else "FAILED"
        print(f" {state} in {seconds:.0f} s, see {OUTPUT.relative_to(ROOT)}/{step.name}.txt")
        failed += [step.name] if done.returncode else []
    if not options.quick:
        print("draw the pictures with: python -m docs.pictures")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
