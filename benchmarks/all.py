"""Run every benchmark in turn, and update the pages of the documentation.

    python benchmarks/all.py [--list] [--only NAME ...] [--quick] [--meteo FOLDER]

Each step is a script of its own. A step whose data or hardware is missing is skipped with a message
that says how to get it. Some scripts write their tables into the pages; the output of all scripts
goes to build/benchmarks/NAME.txt, from which the other figures of the pages are copied by hand.
With --quick every script runs on small problems and no page is changed.
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
    arguments, quick : tuple of str
        Arguments of a full and of a quick run. A step without a quick form is left out of quick
        runs.
    needs : {"", "gpu", "meteo", "published"}
        Data or hardware that not every machine has.
    minutes : int
        Approximate time on two idle cores.
    """

    script: str
    pages: str
    arguments: tuple[str, ...] = ()
    quick: tuple[str, ...] | None = ("--quick",)
    needs: str = ""
    minutes: int = 5

    @property
    def name(self) -> str:
        return Path(self.script).stem.removeprefix("paper.")


TARGETS = "developer_benchmarks.md"
STEPS = [
    Step("benchmarks/table.py", TARGETS, ("--write",), minutes=20),
    Step("benchmarks/linear.py", f"README.md, benchmarks.md, {TARGETS}", quick=("--repeats", "1")),
    Step("benchmarks/kernel.py", f"README.md, benchmarks.md, {TARGETS}"),
    Step("benchmarks/model_selection.py", "model_selection.md"),
    Step("benchmarks/labels.py", TARGETS, quick=("--repeats", "3")),
    Step("benchmarks/missing.py", TARGETS, minutes=1),
    Step("benchmarks/competitors.py", TARGETS, minutes=2),
    Step("benchmarks/inputs.py", f"benchmarks.md, {TARGETS}", ("--write",)),
    Step("benchmarks/blocks.py", f"benchmarks.md, {TARGETS}", ("--write",), minutes=40),
    Step("benchmarks/real_data.py", f"README.md, benchmarks.md, {TARGETS}", minutes=20),
    Step("benchmarks/coverage.py", f"benchmarks.md, {TARGETS}", minutes=20),
    Step("benchmarks/climatology.py", TARGETS, needs="meteo", minutes=10),
    Step("benchmarks/case_study.py", "case_study.md", needs="meteo", minutes=8),
    Step("benchmarks/when_it_helps.py", "when_it_helps.md"),
    Step("benchmarks/libraries.py", "comparison.md", minutes=20),
    Step("benchmarks/scaling.py", "scaling.md"),
    Step("benchmarks/standard_errors.py", "standard_errors.md", minutes=2),
    Step("benchmarks/streaming.py", "streaming.md", minutes=10),
    Step("benchmarks/cluster.py", "scaling.md", minutes=10),
    Step("benchmarks/sparse_inputs.py", "sparse.md"),
    Step("benchmarks/forgetting.py", "streaming.md", quick=("--steps", "20"), minutes=2),
    Step("benchmarks/onnx_agreement.py", "onnx.md", quick=None, minutes=2),
    Step("benchmarks/onnx_latency.py", "onnx.md", quick=("--repeats", "20"), minutes=2),
    Step("benchmarks/robust.py", "robust.md"),
    Step("benchmarks/diagnostics.py", "diagnostics.md"),
    Step("benchmarks/gpu.py", "plot_gpu (gallery)", needs="gpu"),
    Step("benchmarks/agreement.py", TARGETS, quick=None, needs="gpu"),
    Step("paper.forecasts", "published.md", quick=None, needs="published", minutes=30),
]


def missing(step: Step, meteo: str | None) -> str:
    """What a step lacks on this machine; empty where it can run."""
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
    """The command line of a step."""
    arguments = step.quick if quick else step.arguments
    words = [sys.executable]
    if step.script.startswith("paper."):
        words += ["-m", "paper", step.name]
    else:
        words += [str(ROOT / step.script)]
    words += arguments or ()
    return [*words, "--meteo", meteo] if step.needs == "meteo" and meteo else words


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
        lacks = missing(step, options.meteo)
        if lacks or (options.quick and step.quick is None):
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
    if failed:
        print(f"failed: {', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
