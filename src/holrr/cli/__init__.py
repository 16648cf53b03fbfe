"""The command ``holrr``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ._errors import EXIT_INTERRUPTED

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``holrr``; those of the process by default.

    Returns
    -------
    int
        Exit code, see ``holrr --help``.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.cli import main
    >>> from holrr.datasets import make_tensor_regression
    >>> X, Y = make_tensor_regression(60, 4, (3, 2), rank=2, snr=1, random_state=0)
    >>> np.savez("data.npz", X=X, Y=Y)
    >>> main(["fit", "data.npz:X", "data.npz:Y", "-o", "model.holrr"])
    model          HOLRR
    ...
    saved to model.holrr
    0
    """
    try:
        # Numbers take a second to import, in which Ctrl-C must be answered as ever.
        from ._main import run

        return run(arguments)
    except KeyboardInterrupt:
        print("holrr: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
