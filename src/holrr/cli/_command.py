"""Definition of a command: its name, help, arguments and the function that runs it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Command"]


@dataclass(frozen=True)
class Command:
    """A command of the command line.

    To add a command, write a module with a `Command`, and add it to `_commands.COMMANDS`.

    Parameters
    ----------
    name : str
        The word after ``holrr``.
    summary : str
        One line for ``holrr --help``.
    description : str
        First lines of ``holrr NAME --help``.
    add_arguments : callable
        Adds the arguments to a parser.
    run : callable
        Runs the command with the parsed arguments. Errors are exceptions, see `_errors`.
    epilog : str, optional
        Last lines of ``holrr NAME --help``.
    group : str
        The heading of ``holrr --help`` that the command is listed under.
    """

    name: str
    summary: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]
    epilog: str | None = None
    group: str = "your data"
