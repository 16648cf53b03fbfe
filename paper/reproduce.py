"""Run experiments, write their tables and figures, and build the report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

from . import forecasts, images, meteo, runtime, synthetic
from .drawing.style import require_matplotlib, save_figure
from .progress import Progress, progress_bar
from .report import Section, build_report, save_section
from .report import forecasts as forecasts_report
from .report import images as images_report
from .report import meteo as meteo_report
from .report import runtime as runtime_report
from .report import synthetic as synthetic_report
from .running import Experiment, run
from .store import Store
from .tables import to_csv, write_text

__all__ = ["EXPERIMENTS", "OF_THE_PAPER", "configs_for", "reproduce"]

TITLE = "Higher-order low-rank regression: the paper and this library side by side"

EXPERIMENTS: dict[str, tuple[Experiment, ModuleType]] = {
    "synthetic": (synthetic.EXPERIMENT, synthetic_report),
    "images": (images.EXPERIMENT, images_report),
    "runtime": (runtime.EXPERIMENT, runtime_report),
    "meteo": (meteo.EXPERIMENT, meteo_report),
    "forecasts": (forecasts.EXPERIMENT, forecasts_report),
}
# Experiments that "all" runs; the others need files of other authors.
OF_THE_PAPER = ("synthetic", "images", "runtime", "meteo")


def reproduce(
    configs: dict[str, Any],
    out: Path,
    *,
    n_jobs: int = 1,
    resume: bool = False,
    progress: Progress = progress_bar,
) -> list[Path]:
    """Run experiments and write their results.

    Each experiment writes its table ``NAME.csv``, its figures ``NAME_*.png`` and ``NAME_*.svg``,
    and, in the subfolder ``parts``, its finished units and its section of the report. The page
    ``report.html`` has the sections of all experiments that were run into this folder.

    Parameters
    ----------
    configs : dict of str to config
        Settings of each experiment to run, by its name.
    out : Path
        Folder of the files, which is created if it does not exist.
    n_jobs : int, default=1
        Number of processes.
    resume : bool, default=False
        Whether to continue from the finished units of an earlier run with the same settings.
    progress : callable
        Context manager that shows the progress.

    Returns
    -------
    list of Path
        Files that were written.
    """
    require_matplotlib()  # fail early, before the computation
    parts = out / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, config in configs.items():
        written += _reproduce_one(name, config, out, n_jobs, resume, progress)
        build_report(parts, out / "report.html", TITLE)
    return [*written, out / "report.html"]


def _reproduce_one(
    name: str, config: Any, out: Path, n_jobs: int, resume: bool, progress: Progress
) -> list[Path]:
    experiment, report = EXPERIMENTS[name]
    store = Store(out / "parts" / f"{name}.jsonl", config, resume=resume)
    start = time.monotonic()
    table = run(experiment, config, n_jobs=n_jobs, store=store, progress=progress)
    seconds = time.monotonic() - start
    written = [out / f"{name}.csv"]
    write_text(written[0], to_csv(table))
    for figure, draw in report.figures(config, table).items():
        written += save_figure(draw, out / f"{name}_{figure}")
    section = Section(
        name,
        report.TITLE,
        report.html(config, table),
        report.checks(config, table),
        None if resume else seconds,
    )
    save_section(section, out / "parts")
    return written


def configs_for(
    names: Sequence[str], size: str, seed: int, changes: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the settings of experiments, of size ``"quick"``, ``"default"`` or ``"full"``.

    The seed is used by experiments that draw random numbers.
    """
    made = {}
    for name in names:
        kind = EXPERIMENTS[name][0].config
        make = kind if size == "default" else getattr(kind, size)
        random = {"seed": seed} if any(field.name == "seed" for field in fields(kind)) else {}
        made[name] = make(**random, **changes.get(name, {}))
    return made
