"""Draw the badges of the README from ``pyproject.toml``: ``python -m docs.badges``.

They are files of the repository: nothing is fetched, and a test compares them with the project.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img">
  <title>{name}: {value}</title>
  <rect width="{width}" height="20" rx="3" fill="#4b5563"/>
  <path d="M{left} 0h{right}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H{left}z" fill="#1f6f8b"/>
  <g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
    <text x="{middle_left}" y="14">{name}</text>
    <text x="{middle_right}" y="14">{value}</text>
  </g>
</svg>
"""


def values() -> dict[str, str]:
    """What the badges say."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    version = re.search(r'"(.+?)"', (ROOT / "src" / "holrr" / "_version.py").read_text("utf-8"))
    assert version is not None
    return {
        "version": version[1],
        "python": " | ".join(pythons),
        "licence": project["license"],
        "typed": "yes" if (ROOT / "src" / "holrr" / "py.typed").exists() else "no",
    }


def badge(name: str, value: str) -> str:
    """The content of a file.

    Examples
    --------
    >>> "version: 1.0" in badge("version", "1.0")
    True
    """
    left, right = (7 * len(text) + 12 for text in (name, value))
    return BADGE.format(
        name=name,
        value=value,
        width=left + right,
        left=left,
        right=right - 3,
        middle_left=left / 2,
        middle_right=left + right / 2,
    )


def main(folder: Path = ROOT / "docs" / "images") -> None:
    for name, value in values().items():
        (folder / f"badge_{name}.svg").write_text(badge(name, value), "utf-8")


if __name__ == "__main__":
    main()
