"""The gallery: sections in learning order, pictures for light and for dark pages.

The scripts lie in ``examples/`` side by side. `arrange` copies them into a folder for each section,
which is what sphinx-gallery takes for one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from sphinx_gallery.utils import scale_image

from docs.dark import save

__all__ = ["EXAMPLES", "SECTIONS", "LearningOrder", "Section", "arrange", "draw_dark_thumbnails"]
__all__ += ["place_of", "save_in_both_themes"]

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES, ARRANGED = ROOT / "examples", ROOT / "build" / "examples"
THUMBNAIL = (400, 280)  # pixels


@dataclass(frozen=True)
class Section:
    """A section of the gallery.

    Parameters
    ----------
    folder : str
        Part of the addresses of its pages.
    title, text : str
    examples : tuple of str
        Names of the scripts, without ``plot_`` and ``.py``, in learning order.
    """

    folder: str
    title: str
    text: str
    examples: tuple[str, ...]


SECTIONS = [
    Section(
        "first_steps",
        "First steps",
        "Fit a model, choose its ranks, and compare it with ridge regression.",
        ("first_fit", "choose_ranks", "photograph", "digits"),
    ),
    Section(
        "maps",
        "Maps and time series",
        "Outputs on a grid or at stations, with coordinates, missing values and intervals.",
        ("map_with_intervals", "map_with_missing_values", "fields_to_fields", "forecast"),
    ),
    Section(
        "tables",
        "Spectra and tables",
        "Outputs in the columns of a table: choose the ranks and interpret the factors.",
        ("spectra", "excitation_emission", "read_factors"),
    ),
    Section(
        "models",
        "Kernel models and other penalties",
        "Nonlinear models, and penalties instead of rank bounds.",
        ("kernels", "trace_norm"),
    ),
    Section(
        "large_data",
        "Large data and GPUs",
        "Batches, data on disk, and arrays on a GPU.",
        ("streaming", "gpu"),
    ),
    Section(
        "libraries",
        "Comparison with other libraries",
        "The same data with scikit-learn, himalaya and TensorLy.",
        ("compare_libraries",),
    ),
]
OTHERS = Section("others", "More examples", "Further examples.", ())


def place_of(script: Path) -> str:
    """The page of a script on the site, without a suffix: ``gallery/FOLDER/plot_NAME``."""
    name = script.stem.removeprefix("plot_")
    section = next((s for s in SECTIONS if name in s.examples), OTHERS)
    return f"gallery/{section.folder}/{script.stem}"


def arrange() -> list[str]:
    """Copy the scripts into a folder for each section; the folders, in learning order."""
    files = {ARRANGED / "README.rst": (EXAMPLES / "README.rst").read_text("utf-8")}
    for script in EXAMPLES.glob("plot_*.py"):
        target = ARRANGED / Path(place_of(script)).relative_to("gallery")
        files[target.with_suffix(".py")] = script.read_text("utf-8")
    used = [s for s in (*SECTIONS, OTHERS) if any(s.folder == f.parent.name for f in files)]
    for section in used:
        head = f"{section.title}\n{'-' * len(section.title)}\n\n{section.text}\n"
        files[ARRANGED / section.folder / "README.rst"] = head
    for old in set(ARRANGED.glob("**/*.*")) - set(files):
        old.unlink()
    for path, text in files.items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    return [f"../build/examples/{section.folder}" for section in used]  # as seen from docs/


class LearningOrder:
    """Key of sphinx-gallery that sorts the scripts of a folder as their section lists them."""

    def __init__(self, folder: str) -> None:
        self.names = {n: k for s in SECTIONS for k, n in enumerate(s.examples)}

    def __call__(self, filename: str) -> tuple[int, str]:
        name = Path(filename).stem.removeprefix("plot_")
        return self.names.get(name, len(self.names)), name

    def __repr__(self) -> str:
        return "<LearningOrder>"


def save_in_both_themes(block: Any, block_vars: dict[str, Any], config: dict[str, Any]) -> str:
    """Scraper of sphinx-gallery: save the open figures, and show them by plain image directives."""
    text = ""
    for number, path in zip(plt.get_fignums(), block_vars["image_path_iterator"], strict=False):
        figure = plt.figure(number)
        titles = [figure.get_suptitle(), *(ax.get_title() for ax in figure.axes)]
        alt = re.sub(r"\s+", " ", ", ".join(title for title in titles if title))
        save(figure, path, small=False)
        source = Path(path).relative_to(config["src_dir"]).as_posix()
        text += (
            f"\n.. image:: /{source}\n   :alt: {alt or 'figure'}\n   :class: sphx-glr-single-img\n"
        )
    plt.close("all")
    return text


def draw_dark_thumbnails(app: Any) -> None:
    """A thumbnail for dark pages beside each thumbnail of the gallery."""
    for thumb in (Path(app.srcdir) / "gallery").glob("*/images/thumb/*_thumb.png"):
        name = thumb.stem.removeprefix("sphx_glr_").removesuffix("_thumb")
        code = (EXAMPLES / f"{name}.py").read_text("utf-8")
        chosen = re.search(r"sphinx_gallery_thumbnail_number = (\d+)", code)
        number = int(chosen[1]) if chosen else 1
        picture = thumb.parents[1] / f"sphx_glr_{name}_{number:03d}_dark.png"
        if picture.exists():
            scale_image(str(picture), str(thumb.with_stem(f"{thumb.stem}_dark")), *THUMBNAIL)
