"""The site: ``make docs`` builds it from these pages, ``examples/`` and the docstrings."""

from __future__ import annotations

from pathlib import Path

import holrr
from docs.galleries import EXAMPLES, THUMBNAIL, arrange, place_of
from docs.public import INSIDE_METHODS

project, author = "holrr", "The holrr developers"
version = release = holrr.__version__
html_title = project

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "docs.hooks",
]
nitpicky = True  # names of other projects are not looked up: nothing is fetched
nitpick_ignore_regex = [("py:.*", r"(?!holrr\b).*")]
exclude_patterns = ["**/GALLERY_HEADER.rst", "gallery/**/*.ipynb", "results"]
templates_path = ["_templates"]

# ---------------------------------------------------------------- pages
myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 4  # the same anchors as where the pages are read as plain Markdown
default_role = "literal"  # `name` in a docstring, as in a page, is code; see hooks.link_names
# Of blocks with prompts only the commands are copied: no output, no traceback.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos"

# ---------------------------------------------------------------- reference
autosummary_generate = True
autosummary_context = {"inside": INSIDE_METHODS}
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say it, with shapes
numpydoc_show_class_members = False

# ---------------------------------------------------------------- gallery
sphinx_gallery_conf = {
    "examples_dirs": "../build/examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/backreferences",
    "subsection_order": arrange(),
    "within_subsection_order": "docs.galleries.LearningOrder",
    "image_scrapers": ("docs.galleries.save_in_both_themes",),
    "thumbnail_size": THUMBNAIL,
    "doc_module": ("holrr",),
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 60,
    "reference_url": {"holrr": None},
}

# ---------------------------------------------------------------- looks
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
# These pages have no pages below them, and no others beside them.
html_sidebars = {page: [] for page in ("faq", "glossary", "citing", "changelog")}
html_context = {"default_mode": "auto"}
html_search_scorer = str(Path(__file__).with_name("search_scorer.js"))
html_favicon = html_logo = "_static/logo.svg"
html_show_sourcelink = False
html_scaled_image_link = False  # site.js opens pictures in their size
html_theme_options = {
    "logo": {"text": project},
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    # Examples need the width for their code.
    "secondary_sidebar_items": {"**": ["page-toc"]}
    | {place_of(script): [] for script in EXAMPLES.glob("plot_*.py")},
    "footer_start": ["copyright"],
    "footer_end": [],
}
copyright = f"{author}, BSD 3-Clause licence, version {release}"
# One file that draws formulas as pictures: nothing is fetched, not even fonts.
mathjax_path = "mathjax/tex-svg-full.js"
mathjax3_config = {"options": {"enableMenu": False}}
