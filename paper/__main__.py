"""Command line of the experiments: ``python -m paper EXPERIMENT``."""

from __future__ import annotations

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
