"""The command line, as tests call it."""

from __future__ import annotations

from holrr.cli import main


def fails(capfd, code, *words):
    """The one line that a command that must fail has to say."""
    capfd.readouterr()
    assert main(list(words)) == code
    lines = capfd.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]
