"""HTML page of a report: one file without external resources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

__all__ = ["Page", "Section", "Table"]

_STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1b1f24; --dim: #5f6773; --line: #d8dee4;
  --muted: #b9bec6; --shade: #f3f5f7; --main: #1f5a99; --accent: #c2570b; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181d; --ink: #e4e8ec; --dim: #9aa4b0; --line: #343b44; --muted: #4a525c;
    --shade: #1d232a; --main: #7fb2ea; --accent: #f0944d; } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif }
main { max-width: 56rem; margin: 0 auto; padding: 2rem 1.2rem 4rem }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .2rem }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; border-bottom: 1px solid var(--line);
  padding-bottom: .25rem }
p.lead, p.note, figcaption, caption { color: var(--dim) }
p.note, figcaption, caption { font-size: .88rem }
nav { margin: 1rem 0 0; font-size: .92rem }
nav a { margin-right: 1rem; white-space: nowrap }
a { color: var(--main) }
section.summary { background: var(--shade); border-left: 4px solid var(--main);
  padding: .8rem 1.1rem; margin-top: 1.4rem }
section.summary h2 { border: 0; margin: 0 0 .3rem; padding: 0 }
ul, ol { margin: .4rem 0; padding-left: 1.3rem }
li { margin: .25rem 0 }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-size: .93rem; margin: .8rem 0 }
caption { text-align: left; padding-bottom: .3rem }
td, th { padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
th { font-weight: 600; white-space: nowrap }
td.number, th.number { text-align: right; white-space: nowrap }
figure { margin: 1rem 0 }
figure svg { width: 100%; height: auto; display: block; fill: var(--ink) }
@media (max-width: 40rem) { body { font-size: 15px } td, th { padding-right: .6rem } }
@media print { section { break-inside: avoid } }
"""


@dataclass(frozen=True)
class Table:
    """A table of texts.

    Parameters
    ----------
    header : sequence of str
        Names of the columns; empty for a table of names and values.
    rows : sequence of sequences of str
    numbers : sequence of int
        Columns that are aligned to the right.
    caption : str
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()
    caption: str = ""

    def html(self) -> str:
        """Return the table as HTML."""

        def cell(tag: str, place: int, text: str) -> str:
            kind = ' class="number"' if place in self.numbers else ""
            indented = "&emsp;" if text.startswith("  ") else ""
            return f"<{tag}{kind}>{indented}{escape(text.strip())}</{tag}>"

        def line(tags: Sequence[str], row: Sequence[str]) -> str:
            cells = zip(tags, range(len(row)), row, strict=True)
            return f"<tr>{''.join(cell(*item) for item in cells)}</tr>"

        n = len(self.header)
        head = f"<thead>{line(['th'] * n, self.header)}</thead>" if n else ""
        first = "td" if n else "th"
        body = "".join(line([first, *["td"] * (len(row) - 1)], row) for row in self.rows)
        caption = f"<caption>{escape(self.caption)}</caption>" if self.caption else ""
        return f'<div class="scroll"><table>{caption}{head}<tbody>{body}</tbody></table></div>'


@dataclass(frozen=True)
class Section:
    """A section: text, lists, tables and figures in order.

    Parameters
    ----------
    title : str
    parts : list of str
        HTML of the parts; use the methods to add them.
    """

    title: str
    parts: list[str] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """Id of the section in the page."""
        return "".join(c if c.isalnum() else "-" for c in self.title.lower())

    def text(self, words: str, kind: str = "") -> Section:
        """Add a paragraph."""
        self.parts.append(f"<p{f' class={kind!r}' if kind else ''}>{escape(words)}</p>")
        return self

    def items(self, lines: Sequence[str]) -> Section:
        """Add a list."""
        self.parts.append("<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>")
        return self

    def table(self, table: Table) -> Section:
        """Add a table."""
        self.parts.append(table.html())
        return self

    def figure(self, svg: str, caption: str) -> Section:
        """Add a figure with a caption, which is also its description for screen readers."""
        label = f'role="img" aria-label="{escape(caption)}"'
        drawn = svg.replace("<svg", f"<svg {label}", 1)
        words = f"<figcaption>{escape(caption)}</figcaption>"
        self.parts.append(f"<figure>{drawn}{words}</figure>")
        return self

    def html(self, kind: str = "") -> str:
        """Return the section as HTML."""
        named = f' class="{kind}"' if kind else ""
        heading = f"<h2>{escape(self.title)}</h2>"
        return f'<section id="{self.anchor}"{named}>{heading}{"".join(self.parts)}</section>'


@dataclass(frozen=True)
class Page:
    """A page of sections, the first of which is the summary."""

    title: str
    lead: str
    sections: Sequence[Section]
    footer: str

    def html(self) -> str:
        """Return the page as one HTML document without external resources."""
        first, *others = self.sections
        links = "".join(f'<a href="#{s.anchor}">{escape(s.title)}</a> ' for s in others)
        body = [first.html("summary"), f"<nav>{links}</nav>", *(s.html() for s in others)]
        return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{escape(self.title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{escape(self.title)}</h1>
<p class="lead">{escape(self.lead)}</p>
{"".join(body)}
<p class="note">{escape(self.footer)}</p>
</main>
</body>
</html>
"""  # noqa: E501 (one tag)
