"""Entry point of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="holrr")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo")
    demo.add_argument("--out", type=Path, default=Path("holrr-demo"))
    options = parser.parse_args(arguments)
    from ..experiments._demo import run_demo

    run_demo(options.out)
    return 0
