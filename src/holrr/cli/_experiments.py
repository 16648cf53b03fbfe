"""The commands ``holrr demo`` and ``holrr reproduce``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from ._errors import (
    EXIT_INTERRUPTED,
    EXIT_MISSING,
    EXIT_OK,
    EXIT_OUTPUT,
    EXIT_USAGE,
    CommandError,
    one_line,
)

__all__ = ["add_demo", "add_reproduce"]

NAMES = ("synthetic", "images", "runtime", "meteo")


def add_demo(commands: Any) -> argparse.ArgumentParser:
    """The parser of ``holrr demo``."""
    parser = commands.add_parser(
        "demo",
        description="A first look: fit, compare with ridge, draw. Under a minute, no network.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("holrr-demo"),
        metavar="DIR",
        help="folder for the files (default: %(default)s)",
    )
    parser.set_defaults(run=_demo)
    return parser


def add_reproduce(commands: Any) -> argparse.ArgumentParser:
    """The parser of ``holrr reproduce``."""
    parser = commands.add_parser(
        "reproduce",
        description=(
            "Run the experiments of the paper and set its numbers beside ours.\n\n"
            "  synthetic  Figure 1: error against the size of the training set\n"
            "  images     Figure 2: pictures recovered from noisy measurements\n"
            "  runtime    Table 1: seconds of every method\n"
            "  meteo      Table 2: weather forecasts\n"
            "  all        all of them\n\n"
            "Each writes a table (CSV), figures (PNG, SVG) and its part of report.html."
        ),
    )
    parser.add_argument(
        "what",
        choices=(*NAMES, "all"),
        metavar="EXPERIMENT",
        help="synthetic, images, runtime, meteo or all",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick",
        action="store_const",
        const="quick",
        dest="size",
        help="few trials: all in less than five minutes on two cores",
    )
    size.add_argument(
        "--full",
        action="store_const",
        const="full",
        dest="size",
        help="many trials: all in less than an hour on two cores",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="the same seed gives the same numbers (default: %(default)s)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=None,
        metavar="N",
        help="processes (default: one for each core); no number depends on it",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("holrr-report"),
        metavar="DIR",
        help="folder for the files (default: %(default)s)",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on from where an interrupted run with the same settings stopped",
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        default=os.environ.get("HOLRR_METEO_DIR") or None,
        help="folder of the Met Office files; by default $HOLRR_METEO_DIR, or "
        "scikit-learn's data folder, to which missing files are downloaded",
    )
    parser.add_argument(
        "--image",
        metavar="FILE",
        action="append",
        help="a picture of your own for the images experiment; may be repeated",
    )
    parser.set_defaults(run=_reproduce, size="default")
    return parser


def _demo(options: argparse.Namespace) -> int:
    from ..experiments._demo import run_demo

    _make_folder(options.out)
    run_demo(options.out)
    return EXIT_OK


def _reproduce(options: argparse.Namespace) -> int:
    from ..experiments import _reproduce as work

    _check(options)
    names = list(NAMES) if options.what == "all" else [options.what]
    missing = _missing_weather(options) if "meteo" in names else None
    if missing is not None:
        if options.what == "meteo":
            raise missing
        names.remove("meteo")
        print(f"holrr reproduce: without meteo: {missing}", file=sys.stderr)
    changes = {"meteo": {"data_home": options.data_dir}}
    if options.image:
        changes["images"] = {"images": tuple(options.image)}
    configs = work.configs_for(names, options.size, options.seed, changes)
    _make_folder(options.out)
    n_jobs = options.jobs or _n_cores()
    try:
        work.reproduce(configs, options.out, n_jobs=n_jobs, resume=options.resume)
    except KeyboardInterrupt as stop:
        raise CommandError(
            f"interrupted; what was finished is kept in {options.out}, and the same command with "
            "--resume goes on from there",
            EXIT_INTERRUPTED,
        ) from stop
    except OSError as error:
        if error.filename is None or options.out not in Path(error.filename).parents:
            raise
        raise CommandError(
            f"{error.filename} cannot be written: {error.strerror}", EXIT_OUTPUT
        ) from error
    print(f"The report is {options.out / 'report.html'}, tables and figures are beside it.")
    return EXIT_OK if missing is None else missing.code


def _check(options: argparse.Namespace) -> None:
    if options.jobs is not None and options.jobs < 1:
        raise CommandError(f"--jobs must be at least 1; got {options.jobs}", EXIT_USAGE)
    if options.seed < 0:
        raise CommandError(f"--seed must not be negative; got {options.seed}", EXIT_USAGE)
    if options.image and options.what not in ("images", "all"):
        raise CommandError("--image is for the images experiment", EXIT_USAGE)
    for image in options.image or ():
        if not Path(image).is_file():
            raise CommandError(f"{image} does not exist")


def _missing_weather(options: argparse.Namespace) -> CommandError | None:
    """Why the weather cannot be had; None when it is there."""
    from ..experiments.meteo import load_weather

    if options.data_dir is not None and not Path(options.data_dir).is_dir():
        raise CommandError(f"--data-dir: the folder {options.data_dir} does not exist")
    _quieten_downloads()
    try:
        load_weather(options.data_dir)
    except ImportError as error:
        return CommandError(one_line(error), EXIT_MISSING)
    except OSError as error:
        return CommandError(one_line(error), EXIT_MISSING)
    return None


def _quieten_downloads() -> None:
    """A failure is told once, by us."""
    try:
        import pooch
    except ImportError:  # then nothing is downloaded
        return
    pooch.get_logger().setLevel("ERROR")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"the folder {folder} cannot be made: {error.strerror}", EXIT_OUTPUT
        ) from error
    if not os.access(folder, os.W_OK):
        raise CommandError(f"the folder {folder} cannot be written to", EXIT_OUTPUT)


def _n_cores() -> int:
    from joblib import cpu_count

    return cpu_count()
