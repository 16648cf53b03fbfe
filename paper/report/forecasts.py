"""Section of the report on published forecasts of places and variables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from .. import forecasts
from ..drawing import forecasts as drawing
from ..forecast_results import AFTER, Place, of_kind, ours, places, published
from ..tables import Row, Table
from .markup import Cell, figure, number, paragraph, settings, table
from .page import Check

__all__ = ["ASKED", "CAPTION", "TITLE", "checks", "figures", "html"]

TITLE = "Published forecasts"
CAPTION = (
    "Rings in the top row: the least error of each published method. Dots: this library, tested on "
    "the steps after the training part."
)

# Tolerances of the comparison of fits at the settings of the authors with their stored errors.
HOLRR_WITHIN, RIEMANNIAN_WITHIN = 5e-5, 2e-4
# Target root mean squared errors of searches with own inputs, after the training part.
ASKED = {"CCDS": 0.812, "USHCN": 0.888, "Foursquare": 0.119}
# Target mean squared error of the stack.
ASKED_METEO, METEO = 0.309, Place("kasai", "meteo", 3)
WITH_OWN = ("ridge, own inputs", "stack, own inputs")


def figures(config: forecasts.Config, rows: Table) -> dict[str, Any]:
    """Return the name of each figure and the function that draws it."""
    return {"errors": lambda: drawing.draw(rows)}


def html(config: forecasts.Config, rows: Table) -> str:
    """Return the HTML of the section."""
    intro = paragraph(
        "The models predict the next step of every series of places and variables from the last "
        "steps of all series. The tables compare them with the results of Kasai, Jawanpuria and "
        "Mishra (2021; mean squared errors) and of Bahadori, Yu and Liu (NIPS 2014; root mean "
        "squared errors). Five-fold cross-validation over blocks of neighbouring training windows "
        "chooses penalties, ranks, blocks and own inputs. All errors are those of the steps after "
        "the training part. The page 'Comparison with published forecasts' of the documentation "
        "describes the two protocols."
    )
    picture = figure(
        figures(config, rows)["errors"],
        "Dots of the test error of every method in percent of the least published error",
        CAPTION,
    )
    tables = "".join(_table(rows, name) for name in ("kasai", "nips") if places(rows, name))
    hidden = {name: value for name, value in asdict(config).items() if name != "data_dir"}
    return intro + picture + tables + settings(hidden)


def _table(rows: Table, name: str) -> str:
    columns = places(rows, name)
    found = [
        {
            **{f"{method} (published)": e for method, e in published(rows, place).items()},
            **ours(rows, place),
            **ours(rows, place, kind="baseline"),
        }
        for place in columns
    ]
    methods = dict.fromkeys(method for errors in found for method in errors)
    body = [
        [
            method,
            *(
                number(e[method], bold=e[method] == min(e.values())) if method in e else Cell("–")
                for e in found
            ),
        ]
        for method in methods
    ]
    caption = {"kasai": "Kasai et al.: mean squared errors", "nips": "NIPS 2014: their roots"}[name]
    return table(("method", *map(str, columns)), body, caption)


# ---------------------------------------------------------------- claims


def checks(config: forecasts.Config, rows: Table) -> list[Check]:
    """Check the targets of the comparison whose methods were run."""
    found = _settings_of_the_authors(rows)
    if {"stack", "stack, blocks"} <= set(config.methods):
        if places(rows, "kasai"):
            found += [
                _below_published(rows, "kasai", ["stack"]),
                _below_published(rows, "kasai", ["stack, blocks"]),
            ]
        if METEO in places(rows):
            found.append(_meteo(rows))
    if set(WITH_OWN) <= set(config.methods) and places(rows, "nips"):
        found += [_own_inputs(rows), _below_published(rows, "nips", list(WITH_OWN))]
    if places(rows, "kasai") and config.methods:
        found.append(_below_month(rows))
    return found


def _settings_of_the_authors(rows: Table) -> list[Check]:
    same = of_kind(rows, "same")
    holrr = [row for row in same if row["method"] == "holrr"]
    refined = [row for row in same if row["method"] == "proposed"]
    found = []
    if holrr:
        found.append(
            Check(
                f"Each of the {len(holrr)} stored errors of HOLRR is reproduced within "
                f"{HOLRR_WITHIN:g} at the ranks and penalties of the authors",
                _farthest(holrr) <= HOLRR_WITHIN,
                f"largest difference {_farthest(holrr):.1g}",
            )
        )
    by_data = {row["data"]: [r for r in refined if r["data"] == row["data"]] for row in refined}
    if by_data:
        words = [
            f"{data}: {len(cells)} errors, largest difference {_farthest(cells):.1g}"
            for data, cells in by_data.items()
        ]
        found.append(
            Check(
                "Each stored error of the Riemannian method is reproduced within "
                f"{RIEMANNIAN_WITHIN:g} by refined fits",
                _farthest(refined) <= RIEMANNIAN_WITHIN,
                "\n".join(words),
            )
        )
    return found


def _farthest(rows: list[Row]) -> float:
    return max(abs(row["error"] - row["published"]) for row in rows)


def _below_published(rows: Table, name: str, methods: list[str]) -> Check:
    """Check whether the searches, tested after the training part, beat every published error."""
    holds, words = True, []
    for place in places(rows, name):
        theirs = published(rows, place)
        best = min(theirs, key=lambda method: theirs[method])
        errors = ours(rows, place)
        holds &= all(errors[method] < theirs[best] for method in methods)
        shown = ", ".join(f"{method.replace(',', '')} {errors[method]:.4f}" for method in methods)
        words.append(f"{place}: {shown}, {best} {theirs[best]:.4f}")
    who = {"kasai": "Kasai et al.", "nips": "NIPS 2014"}[name]
    searches = " and ".join(f"the {method.replace(', ', ' with ')}" for method in methods)
    claim = f"{who}: errors of {searches}, chosen on the training part, below every published error"
    return Check(claim, holds, "\n".join(words))


def _meteo(rows: Table) -> Check:
    errors = {method: e for method, e in ours(rows, METEO).items() if method.startswith("stack")}
    return Check(
        f"Mean squared error of meteo with three lags: the stack below {ASKED_METEO:g}",
        errors["stack"] < ASKED_METEO,
        "\n".join(f"{method.replace(', ', ' with ', 1)} {e:.4f}" for method, e in errors.items()),
    )


def _own_inputs(rows: Table) -> Check:
    holds, words = True, []
    for place in places(rows, "nips"):
        errors = ours(rows, place)
        holds &= all(errors[method] <= ASKED[place.data] for method in WITH_OWN)
        shown = ", ".join(f"{method.split(',')[0]} {errors[method]:.4f}" for method in WITH_OWN)
        words.append(f"{place.data}: {shown}, target {ASKED[place.data]:g}")
    return Check(
        "NIPS 2014, after the training part: ridge and the stack with own inputs reach the target "
        "errors",
        holds,
        "\n".join(words),
    )


def _below_month(rows: Table) -> Check:
    """Check whether searches beat the month of the year, although inputs have no calendar."""
    holds, words = True, []
    for place in places(rows):
        month = ours(rows, place, AFTER, kind="baseline").get("month of the year")
        if month is None:
            continue
        errors = ours(rows, place)
        worst = max(errors, key=lambda method: errors[method])
        best = min(errors, key=lambda method: errors[method])
        holds &= errors[worst] < month
        words.append(
            f"{place.table} {place}: month {month:.4f}, ours {errors[best]:.4f} ({best}) to "
            f"{errors[worst]:.4f} ({worst})"
        )
    return Check(
        "Monthly series: every search has a lower error than the mean of the month of the year",
        holds,
        "\n".join(words).replace("kasai ", "Kasai et al., ").replace("nips ", "NIPS 2014, "),
    )
