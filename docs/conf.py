"""The site: ``make docs`` builds it from these pages, ``examples/`` and the docstrings."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import download_reference

import holrr
from docs.public import INSIDE_METHODS, is_documented, public_names

DOCS = Path(__file__).resolve().parent
SOURCE = DOCS.parent / "src"
PUBLIC = public_names()
ROOT_PAGES = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
UNLINKED = (nodes.reference, nodes.title)

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
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
nitpicky = True  # names of other projects are not looked up: nothing is fetched
nitpick_ignore_regex = [("py:.*", r"(?!holrr\b).*")]
exclude_patterns = ["**/GALLERY_HEADER.rst", "gallery/**/*.ipynb", "results"]
templates_path = ["_templates"]

# ---------------------------------------------------------------- pages
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4  # the same anchors as where the pages are read as plain Markdown
default_role = "literal"  # `name` in a docstring, as in a page, is code; see link_names
copybutton_exclude = ".linenos, .gp, .go"  # prompts and what is printed are not copied

# ---------------------------------------------------------------- reference
autosummary_generate = True
autosummary_context = {"inside": INSIDE_METHODS}
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say it, with shapes
numpydoc_show_class_members = False

# ---------------------------------------------------------------- gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/backreferences",
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
html_context = {"default_mode": "auto"}
html_favicon = html_logo = "_static/logo.svg"
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": project},
    "navigation_with_keys": False,
    "show_prev_next": True,
    # Examples need the width for their code.
    "secondary_sidebar_items": {"**": ["page-toc"]}
    | {f"gallery/{path.stem}": [] for path in DOCS.parent.glob("examples/*.py")},
    "footer_start": ["copyright"],
    "footer_end": [],
}
copyright = f"{author}, BSD 3-Clause licence, version {release}"
# One file that draws formulas as pictures: nothing is fetched, not even fonts.
mathjax_path = "mathjax/tex-svg-full.js"
mathjax3_config = {"options": {"enableMenu": False}}


def copy_mathjax(app: Any) -> None:
    """Put the one file of MathJax that is used beside the other static files."""
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    assert spec is not None
    assert spec.origin is not None
    target = Path(app.outdir) / "_static" / mathjax_path
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(spec.origin).parent / "static" / mathjax_path, target)


def take_from_root(app: Any, page: str, source: list[str]) -> None:
    """Pages from the root of the project, the changelog for instance, with links as in docs/."""
    name = f"{page.upper()}.md"
    if name in ROOT_PAGES:
        app.env.note_dependency(DOCS.parent / name)
        text = (DOCS.parent / name).read_text("utf-8").replace("](docs/", "](")
        text = text.replace("](src/", "](../src/")
        source[0] = re.sub(r"]\((\w+\.md)\)", lambda m: m[0].lower(), text)


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> Any:
    """Leave out what estimators have from scikit-learn."""
    return None if is_documented(name, obj) else True


def link_pages(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Pages that a docstring names by their file, as in docs/kernels.md, are links."""
    lines[:] = [re.sub(r"`*docs/(\w+)\.md`*", r":doc:`/\1`", line) for line in lines]


def link_names(app: Any, doctree: nodes.document, page: str) -> None:
    """Public names in code type are links to the reference, but on their own pages."""
    objects = app.env.domaindata["py"]["objects"]
    known = {name.split(".", start)[-1]: name for name in PUBLIC for start in (0, 1, 9)}
    for node in list(doctree.findall(nodes.literal)):
        entry = objects.get(known.get(node.astext().removesuffix("()")))
        if entry and entry.docname != page and not isinstance(node.parent, UNLINKED):
            uri = f"{app.builder.get_relative_uri(page, entry.docname)}#{entry.node_id}"
            node.replace_self(nodes.reference("", "", node.deepcopy(), internal=True, refuri=uri))


def link_source(app: Any, doctree: nodes.document, page: str) -> None:
    """Links to files of the library lead to its source on the site, to examples to the gallery."""
    for node in list(doctree.findall(download_reference)):
        path = (DOCS / node["reftarget"]).resolve().with_suffix("")
        name = path.relative_to(SOURCE).as_posix() if SOURCE in path.parents else ""
        entry = app.env._viewcode_modules.get(name.replace("/", "."))
        tags = entry[1] if entry else {}
        if tags:  # the text of the link may be one of the names in the file
            place = f"#{node.astext()}" if node.astext() in tags else ""
            uri = app.builder.get_relative_uri(page, f"_modules/{name}") + place
        elif path.parent == DOCS.parent / "examples":
            uri = app.builder.get_relative_uri(page, f"gallery/{path.name}")
        else:
            continue
        node.replace_self(nodes.reference("", "", *node.children, internal=True, refuri=uri))


def setup(app: Any) -> None:
    app.connect("builder-inited", copy_mathjax)
    app.connect("source-read", take_from_root)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", link_pages, priority=400)
    app.connect("doctree-resolved", link_names)
    app.connect("doctree-resolved", link_source)
