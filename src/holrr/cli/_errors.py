"""Exit codes, and error messages of one line."""

from __future__ import annotations

import errno

__all__ = ["CommandError", "EXIT_INPUT", "EXIT_INTERRUPTED", "EXIT_MISSING", "EXIT_OK"]
__all__ += ["EXIT_OTHER", "EXIT_OUTPUT", "EXIT_USAGE", "exit_code_of", "one_line"]

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
