"""Draw the chart of choosing.md and the pipeline of ARCHITECTURE.md for light and dark pages.

``python -m docs.chart`` writes ``images/choosing.svg``, ``images/choosing_dark.svg`` and
``images/pipeline_dark.svg``. The chart is narrow, so that it can be read on a phone.
"""

from __future__ import annotations

from pathlib import Path

IMAGES = Path(__file__).resolve().parent / "images"
WIDTH = 540
QUESTION, ANSWER, GAP, ARROW = 252, 226, 58, 36  # widths, and the height between two rows
# Question, what leads to the right and to the next row, and the estimators on the right.
ROWS = [
    (
        ["Is y a grid?", "a map, stations x variables:", "shape (n, d1, d2, ...)"],
        "no",
        "yes",
        [
            "RLSCV or LRRCV",
            "one output, or many",
            "outputs in one mode;",
            "nonlinear: KernelRLSCV",
            "or KernelLRRCV",
        ],
    ),
    (
        ["Is the relation linear?", "not sure: compare", "held_out_mse_ of both"],
        "no",
        "yes",
        ["KernelHOLRRCV", "RBF and other kernels"],
    ),
    (
        ["Settings known?", "the penalty and the", "rank of every mode"],
        "yes",
        "no",
        ["HOLRR", "rank=..., alpha=..."],
    ),
]
LAST = ["HOLRRCV", "chooses penalty and ranks by cross-validation,", "gives prediction intervals"]
COLOURS = {
    "light": {
        "paper": "#ffffff",
        "ink": "#1f2328",
        "faint": "#57606a",
        "line": "#1f5a99",
        "question": "#f3f6fa",
        "answer": "#e0ebf7",
        "default": "#fbe9dc",
        "edge": "#d1600e",
    },
    "dark": {
        "paper": "#14181e",
        "ink": "#e6edf3",
        "faint": "#b3bcc6",
        "line": "#6ea3dc",
        "question": "#1f2630",
        "answer": "#20344c",
        "default": "#45301f",
        "edge": "#f0883e",
    },
}
# Colours of pipeline.svg on dark pages.
PIPELINE = {"#ffffff": "#14181e", "#eaf1f8": "#20344c", "#2f5d8a": "#6ea3dc", "#1b3550": "#e6edf3"}


def chart(theme: str) -> str:
    """The chart as SVG.

    Parameters
    ----------
    theme : {"light", "dark"}
    """
    c = COLOURS[theme]
    boxes = [20 * max(len(question), len(answer)) + 20 for question, _, _, answer in ROWS]
    top = 4 + sum(boxes) + ARROW * len(boxes)
    height = top + 92
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="Helvetica, Arial, sans-serif" role="img">',
        "<title>Which estimator should I use?</title>",
        f'<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0,0 L10,5 L0,10 z" fill="{c["line"]}"/>'
        "</marker></defs>",
        f'<rect width="{WIDTH}" height="{height}" fill="{c["paper"]}"/>',
    ]
    y = 4
    for box, (question, aside, onward, answer) in zip(boxes, ROWS, strict=True):
        middle, right = y + box / 2, 2 + QUESTION + GAP
        parts += _box(2, y, QUESTION, box, question, c["question"], c["line"], c)
        parts += _box(right, y, ANSWER, box, answer, c["answer"], c["line"], c, code=True)
        parts += _arrow(f"M{2 + QUESTION},{middle} H{right - 2}", c)
        parts += _arrow(f"M{2 + QUESTION / 2},{y + box} V{y + box + ARROW - 2}", c)
        parts.append(_text(2 + QUESTION + GAP / 2, middle - 8, aside, 16, c["ink"], bold=True))
        parts.append(_text(2 + QUESTION / 2 + 24, y + box + 24, onward, 16, c["ink"], bold=True))
        y += box + ARROW
    wide = QUESTION + GAP + ANSWER
    parts += _box(2, top, wide, 86, LAST, c["default"], c["edge"], c, code=True, size=20)
    return "\n".join([*parts, "</svg>", ""])


def _box(x, y, width, height, lines, fill, edge, c, code=False, size=17) -> list[str]:
    """A box with a heading and smaller lines below it, centred."""
    head, *rest = lines
    parts = [
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" '
        f'stroke="{edge}" stroke-width="1.6"/>'
    ]
    middle = x + width / 2
    first = y + height / 2 - 9.5 * len(rest) + 6
    parts.append(_text(middle, first, head, size, c["ink"], bold=True, code=code))
    for k, line in enumerate(rest, 1):
        parts.append(_text(middle, first + 1 + 20 * k, line, 15, c["faint"]))
    return parts


def _text(x, y, words, size, color, bold=False, code=False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    family = ' font-family="Menlo, Consolas, DejaVu Sans Mono, monospace"' if code else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{color}" text-anchor="middle"'
        f"{weight}{family}>{words}</text>"
    )


def _arrow(path: str, c: dict[str, str]) -> list[str]:
    return [
        f'<path d="{path}" stroke="{c["line"]}" stroke-width="1.8" fill="none" '
        'marker-end="url(#tip)"/>'
    ]


def pipeline() -> str:
    """The pipeline of a fit and of a search in the colours of dark pages."""
    text = (IMAGES / "pipeline.svg").read_text("utf-8")
    for light, dark in PIPELINE.items():
        text = text.replace(light, dark)
    return text


def files() -> dict[str, str]:
    """Name and content of every file."""
    return {
        "choosing.svg": chart("light"),
        "choosing_dark.svg": chart("dark"),
        "pipeline_dark.svg": pipeline(),
    }


def main() -> None:
    for name, text in files().items():
        (IMAGES / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
