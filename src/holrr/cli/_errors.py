"""Errors and notes of the command line."""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["CommandError", "EXIT_INPUT", "EXIT_INTERRUPTED", "EXIT_MISSING", "EXIT_OK"]
__all__ += ["EXIT_OTHER", "EXIT_OUTPUT", "EXIT_USAGE", "exit_code_of", "note", "one_line"]
__all__ += ["some", "warnings_as_lines", "writing"]

EXIT_OK = 0
EXIT_OTHER = 1
EXIT_USAGE = 2
EXIT_INPUT = 3
EXIT_OUTPUT = 4
EXIT_MISSING = 5
EXIT_INTERRUPTED = 130

_CANNOT_WRITE = {errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EFBIG}


class CommandError(Exception):
    """An error with a message for the user and an exit code."""

    def __init__(self, message: str, code: int = EXIT_INPUT):
        super().__init__(message)
        self.code = code


def exit_code_of(error: BaseException) -> int:
    """Return the exit code for an exception that ended a command."""
    if isinstance(error, CommandError):
        return error.code
    if isinstance(error, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    if isinstance(error, ImportError):
        return EXIT_MISSING
    if isinstance(error, OSError) and error.errno in _CANNOT_WRITE:
        return EXIT_OUTPUT
    if isinstance(error, (ValueError, TypeError, OSError)):
        return EXIT_INPUT
    return EXIT_OTHER


def one_line(error: BaseException) -> str:
    """Return the message of an exception in one line, or its type if it has no message."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = " ".join(str(error).split()).replace('missing="ignore"', "--missing ignore")
    if not text:
        return type(error).__name__
    known = isinstance(error, (CommandError, ValueError, TypeError, OSError, ImportError))
    return text if known else f"{type(error).__name__}: {text}"


def note(message: str) -> None:
    """Print a note, which is not an error, to standard error."""
    print(f"holrr: note: {message}", file=sys.stderr)


def some(names: list[str], most: int = 8) -> str:
    """Return the first names of a list, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


@contextmanager
def warnings_as_lines(command: str) -> Iterator[None]:
    """Print warnings as lines on standard error, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(" ".join(str(w.message).split()) for w in caught):
        print(f"holrr {command}: warning: {text}", file=sys.stderr)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Add the name of the file to errors that occur while it is written."""
    try:
        yield
    except OSError as error:
        raise CommandError(
            f"{path} cannot be written: {error.strerror or error}", EXIT_OUTPUT
        ) from error
