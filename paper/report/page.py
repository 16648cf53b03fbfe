"""Self-contained HTML page with the sections of all experiments that were run."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from holrr import __version__

from ..published import CITATION
from ..tables import write_text
from .markup import table
from .style import CSS

__all__ = ["Check", "Section", "build_report", "save_section"]

ORDER = ("synthetic", "images", "runtime", "meteo", "forecasts")
PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "matplotlib")


@dataclass(frozen=True)
class Check:
    """Claim, whether it held in this run, and the figures."""

    claim: str
    holds: bool
    found: str


@dataclass(frozen=True)
class Section:
    """Section of the report on one experiment."""

    name: str
    title: str
    html: str
    checks: list[Check] = field(default_factory=list)
    seconds: float | None = None


def save_section(section: Section, folder: Path) -> None:
    """Save a section, so that later runs can include it in the page."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / f"{section.name}.json", json.dumps(asdict(section)))


def build_report(parts: Path, path: Path, title: str) -> None:
    """Write the page with all sections in the folder `parts`.

    Parameters
    ----------
    parts : Path
        Folder with the sections that `save_section` wrote.
    path : Path
        File of the page.
    title : str
        Heading of the page.
    """
    sections = [s for name in ORDER if (s := _load(parts / f"{name}.json")) is not None]
    write_text(path, _page(title, sections))


def _load(path: Path) -> Section | None:
    if not path.exists():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    checks = [Check(**check) for check in content.pop("checks")]
    return Section(**content, checks=checks)


def _page(title: str, sections: list[Section]) -> str:
    links = "".join(f'<a href="#{s.name}">{escape(s.title)}</a>' for s in sections)
    body = "".join(
        f'<section id="{s.name}"><h2>{escape(s.title)}</h2>{s.html}</section>' for s in sections
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{CSS}</style>
</head>
<body>
<header><h1>{escape(title)}</h1>
<p class="lead">holrr {escape(__version__)}, {datetime.now(UTC):%d %B %Y}.
Errors after ± are standard errors of the mean.</p>
<nav>{links}</nav></header>
<main>{_overview(sections)}{body}{_colophon(sections)}</main>
</body>
</html>
"""


def _overview(sections: list[Section]) -> str:
    checks = [(section, check) for section in sections for check in section.checks]
    if not checks:
        return ""
    items = "".join(
        f'<li class="{"yes" if check.holds else "no"}"><div><b>{escape(check.claim)}</b>'
        f"<span>{escape(check.found)}</span></div></li>"
        for _, check in checks
    )
    held = sum(check.holds for _, check in checks)
    return (
        f'<section id="overview"><h2>Claims and results</h2>'
        f"<p>{held} of {len(checks)} claims held in this run.</p>"
        f'<ul class="checks">{items}</ul></section>'
    )


def _colophon(sections: list[Section]) -> str:
    rows = [("Python", platform.python_version()), ("holrr", __version__)]
    rows += [(name, found) for name in PACKAGES if (found := _version(name)) is not None]
    rows += [("system", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores")]
    rows += [
        (f"time for {s.name}", f"{s.seconds:.0f} s") for s in sections if s.seconds is not None
    ]
    return (
        f'<section id="colophon"><h2>Software versions</h2>{table(("name", "version"), rows)}'
        f"<p>The paper: {escape(CITATION)}</p></section>"
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
