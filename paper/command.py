"""Command line of the experiments."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from joblib import cpu_count

from . import forecasts, meteo, reproduce
from .forecast_data import check_files

__all__ = ["main"]

# Exit codes of the command line of the library.
EXIT_OK, EXIT_USAGE, EXIT_INPUT, EXIT_OUTPUT, EXIT_MISSING, EXIT_INTERRUPTED = 0, 2, 3, 4, 5, 130

DESCRIPTION = """\
Run the experiments of the paper and compare its numbers with those of this library.

  synthetic  Figure 1: error against the size of the training set
  images     Figure 2: pictures recovered from noisy measurements
  runtime    Table 1: seconds of every method
  meteo      Table 2: weather forecasts
  all        the four experiments above
  forecasts  published forecasts of two other papers, on their data (docs/published.md)

Each experiment writes a table (CSV), figures (PNG, SVG) and its section of report.html.
"""


class CommandError(Exception):
    """Error with a message for the user and an exit code."""

    def __init__(self, message: object, code: int):
        super().__init__(" ".join(str(message).split()))
        self.code = code


class Parser(argparse.ArgumentParser):
    """Parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message} (see {self.prog} --help)", EXIT_USAGE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments after ``python -m paper``; by default, those of the process.

    Returns
    -------
    int
        Exit code: 0 success, 2 invalid command line, 3 missing or invalid input, 4 output cannot be
        written, 5 missing package or download, 130 interrupted.
    """
    try:
        return _run(_parser().parse_args(arguments))
    except SystemExit as stop:  # --help
        return int(stop.code or EXIT_OK)
    except CommandError as error:
        return _complain(error, error.code)
    except ImportError as error:
        return _complain(error, EXIT_MISSING)
    except (ValueError, OSError) as error:
        return _complain(error, EXIT_INPUT)


def _complain(error: Exception, code: int) -> int:
    print(f"paper: {' '.join(str(error).split())}", file=sys.stderr)
    return code


def _parser() -> Parser:
    parser = Parser(
        prog="python -m paper",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "what",
        choices=(*reproduce.EXPERIMENTS, "all"),
        metavar="EXPERIMENT",
        help="synthetic, images, runtime, meteo, all or forecasts",
    )
    size = parser.add_mutually_exclusive_group()
    for name, words in (
        ("quick", "few trials: all in a few minutes on two cores"),
        ("full", "many trials: all in less than an hour on two cores"),
    ):
        size.add_argument(f"--{name}", action="store_const", const=name, dest="size", help=words)
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
        metavar="N",
        help="number of processes (default: one for each core); it does not change the numbers",
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
        help="continue an interrupted run with the same settings",
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder of the data. For meteo, it has the files of the Met Office (default: "
        "$HOLRR_METEO_DIR, or the data folder of scikit-learn, to which missing files are "
        "downloaded). For forecasts, it has the published series (default: $HOLRR_PUBLISHED_DIR)",
    )
    parser.add_argument(
        "--image",
        metavar="FILE",
        action="append",
        help="picture for the images experiment; can be given several times",
    )
    parser.set_defaults(size="default")
    return parser


def _run(options: argparse.Namespace) -> int:
    _check(options)
    names = list(reproduce.OF_THE_PAPER) if options.what == "all" else [options.what]
    variable = "HOLRR_PUBLISHED_DIR" if options.what == "forecasts" else "HOLRR_METEO_DIR"
    data_dir = options.data_dir or os.environ.get(variable) or None
    needs_data = bool({"meteo", "forecasts"} & set(names))
    if needs_data and data_dir is not None and not Path(data_dir).is_dir():
        raise CommandError(f"--data-dir: the folder {data_dir} does not exist", EXIT_INPUT)
    missing = _missing_weather(data_dir) if "meteo" in names else None
    if missing is not None:
        if options.what == "meteo":
            raise missing
        names.remove("meteo")
        print(f"paper: meteo is skipped: {missing}", file=sys.stderr)
    changes: dict[str, dict[str, Any]] = {
        "meteo": {"data_home": data_dir},
        "forecasts": {"data_dir": data_dir},
    }
    if options.image:
        changes["images"] = {"images": tuple(options.image)}
    configs = reproduce.configs_for(names, options.size, options.seed, changes)
    if "forecasts" in configs:
        check_files(data_dir, forecasts.wanted_files(configs["forecasts"]))
    _make_folder(options.out)
    try:
        reproduce.reproduce(
            configs, options.out, n_jobs=options.jobs or cpu_count(), resume=options.resume
        )
    except KeyboardInterrupt as stop:
        raise CommandError(
            f"interrupted; finished results are in {options.out}. To continue, run the same "
            "command with --resume",
            EXIT_INTERRUPTED,
        ) from stop
    except OSError as error:
        if error.filename is None or options.out not in Path(error.filename).parents:
            raise
        message = f"{error.filename} cannot be written: {error.strerror}"
        raise CommandError(message, EXIT_OUTPUT) from error
    print(
        f"The report is {options.out / 'report.html'}. Tables and figures are in the same folder."
    )
    return EXIT_OK if missing is None else missing.code


def _check(options: argparse.Namespace) -> None:
    if options.jobs is not None and options.jobs < 1:
        raise CommandError(f"--jobs must be at least 1; got {options.jobs}", EXIT_USAGE)
    if options.seed < 0:
        raise CommandError(f"--seed must be at least 0; got {options.seed}", EXIT_USAGE)
    if options.image and options.what not in ("images", "all"):
        raise CommandError(
            f"--image is available only for the experiments images and all; got {options.what}",
            EXIT_USAGE,
        )
    for image in options.image or ():
        if not Path(image).is_file():
            raise CommandError(f"{image} does not exist", EXIT_INPUT)


def _missing_weather(data_dir: str | None) -> CommandError | None:
    """Return the error that the weather is not available, or None if it is."""
    _quieten_downloads()
    try:
        meteo.load_weather(data_dir)
    except (ImportError, OSError) as error:
        return CommandError(error, EXIT_MISSING)
    return None


def _quieten_downloads() -> None:
    """Silence the messages of pooch, since this module reports failures."""
    try:
        import pooch
    except ImportError:  # without pooch, nothing is downloaded
        return
    pooch.get_logger().setLevel("ERROR")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"the folder {folder} cannot be created: {error.strerror}"
        raise CommandError(message, EXIT_OUTPUT) from error
    if not os.access(folder, os.W_OK):
        raise CommandError(f"the folder {folder} cannot be written to", EXIT_OUTPUT)
