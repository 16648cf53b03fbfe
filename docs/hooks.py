"""What the site adds to the pages: navigation, search terms, pictures for dark pages, links.

The pages are plain Markdown that reads well without the site. Everything that only the site needs
is added here when it is built.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import imagesize
from docutils import nodes
from sphinx import addnodes
from sphinx.pycode import ModuleAnalyzer
from sphinx.transforms import SphinxTransform

from docs.galleries import draw_dark_thumbnails, place_of
from docs.pages import EXTRAS_LINE, OTHERS, stated_extras
from docs.public import is_documented, public_names

DOCS = Path(__file__).resolve().parent
SOURCE = DOCS.parent / "src"
# Pages whose tables are the navigation: the links of a first column are the pages below them.
HUBS = ["index", "tutorials", "guide", "benchmarks", "coming_from", "theory", "project"]
ROOT_PAGES = ["ARCHITECTURE.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md"]
ROOT_PAGES += ["SECURITY.md"]
UNLINKED = (nodes.reference, nodes.title)
PUBLIC = public_names()


# ---------------------------------------------------------------- navigation


def pages_of(hub: str, text: str) -> list[tuple[str, list[str]]]:
    """The pages below a hub: for each section with a table its title and the linked pages.

    Examples
    --------
    >>> pages_of("guide", "# Guide\\n## Models\\n| [Linear](linear.md) | fits [A](a.md) |\\n")
    [('Models', ['linear'])]
    """
    found = []
    for section in re.split(r"^(?=##? )", text, flags=re.M):
        links = re.findall(r"^\| \[[^\]]*\]\(([^)#]+)\) \|", section, re.M)
        names = [_page_name(link) for link in links if "://" not in link]
        title = re.match(r"##? (.*)", section)
        if names and title:
            found.append((title[1], names))
    return found


def _page_name(link: str) -> str:
    """The page that a link in a hub leads to; scripts of the gallery are listed by its index."""
    return "gallery/index" if link == "../examples/README.rst" else link.rpartition(".")[0]


def link_gallery(app: Any, page: str, source: list[str]) -> None:
    """Links to the folder of the examples lead to the gallery."""
    source[0] = source[0].replace("](../examples/README.rst)", "](gallery/index.rst)")


def add_toctrees(app: Any, page: str, source: list[str]) -> None:
    """Give a hub a hidden toctree for each of its tables."""
    if page not in HUBS:
        return
    parts = re.split(r"^(?=##? )", source[0], flags=re.M)
    for k, part in enumerate(parts):
        for title, names in pages_of(page, part):
            caption = f":caption: {title}\n" if page == "guide" else ""
            rows = "\n".join(names)
            parts[k] = f"{part.rstrip()}\n\n```{{toctree}}\n:hidden:\n{caption}\n{rows}\n```\n\n"
    source[0] = "".join(parts)


def take_from_root(app: Any, page: str, source: list[str]) -> None:
    """Pages from the root of the project, the changelog for instance, with links as in docs/."""
    name = f"{page.upper()}.md"
    if name in ROOT_PAGES:
        app.env.note_dependency(DOCS.parent / name)
        text = (DOCS.parent / name).read_text("utf-8").replace("](docs/", "](")
        text = text.replace("](src/", "](../src/")
        source[0] = re.sub(r"]\((\w+\.md)\)", lambda m: m[0].lower(), text)


def name_extras(app: Any, page: str, source: list[str]) -> None:
    """Say how the extras that a page uses are installed."""

    def line(found: re.Match[str]) -> str:
        names = stated_extras(found[0])
        extras = ",".join(name for name in names if name not in OTHERS)
        others = " ".join(name for name in names if name in OTHERS)
        wanted = " ".join(filter(None, [f'"holrr[{extras}]"' if extras else "", others]))
        return f"*Extras used on this page: {found[1]} (`pip install {wanted}`).*"

    source[0] = EXTRAS_LINE.sub(line, source[0])


def end_blocks(app: Any, page: str, source: list[str]) -> None:
    """Drop the empty last line of code blocks, which doctests need."""
    source[0] = re.sub(r"(^```pycon\n.*?\n)\n```$", r"\1```", source[0], flags=re.M | re.S)


# ---------------------------------------------------------------- search


def search_terms() -> dict[str, list[str]]:
    """What readers search for, by the pages that answer it: ``docs/search_terms.toml``."""
    return tomllib.loads((DOCS / "search_terms.toml").read_text("utf-8"))


class SearchTerms(SphinxTransform):
    """Index entries at the head of a page, which the search ranks above words of the text."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        path = str(DOCS / "search_terms.toml")
        self.env.note_dependency(path)
        section = next(iter(self.document.findall(nodes.section)), None)
        terms = search_terms().get(self.env.docname, [])
        if terms and section is not None:
            entries = [("single", term, section["ids"][0], "main", None) for term in terms]
            section.insert(1, addnodes.index(entries=entries, inline=False))


def write_pages_with_search_terms(app: Any, env: Any) -> list[str]:
    """Write these pages in every build: Sphinx drops the entries of pages that it skips."""
    return [page for page in search_terms() if page in env.all_docs]


# ---------------------------------------------------------------- pictures


class DarkPictures(SphinxTransform):
    """Pictures with a file for dark pages are shown as both; the theme hides one of them.

    The files have twice the resolution at which they are shown.
    """

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        for node in list(self.document.findall(nodes.image)):
            source = Path(self.env.relfn2path(node["uri"])[1])
            dark = source.with_stem(f"{source.stem}_dark")
            if "://" in node["uri"] or not dark.exists():
                continue
            if "width" not in node and source.suffix == ".png" and source.parent.name != "thumb":
                node["width"] = f"{imagesize.get(str(source))[0] // 2}px"
            twin = node.deepcopy()
            uri = node["uri"]
            twin["uri"] = f"{uri.removesuffix(source.suffix)}_dark{source.suffix}"
            node["classes"] = [*node["classes"], "only-light"]
            twin["classes"] = [*twin["classes"], "only-dark"]
            node.parent.insert(node.parent.index(node) + 1, twin)


# ---------------------------------------------------------------- reference and links


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> Any:
    """Leave out what estimators have from scikit-learn."""
    return None if is_documented(name, obj) else True


def describe_data(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Take the ``#:`` comment of a public variable from the module that defines it."""
    package, _, variable = name.rpartition(".")
    modules = [m for m in sys.modules if what == "data" and m.startswith(f"{package}.")]
    for module in modules:
        comments = ModuleAnalyzer.for_module(module)
        comments.analyze()
        if ("", variable) in comments.attr_docs:
            lines[:] = comments.attr_docs["", variable]


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
    for node in list(doctree.findall(addnodes.download_reference)):
        path = (DOCS / node["reftarget"]).resolve()
        if SOURCE in path.parents:  # the text of the link may be one of the names in the file
            name, text = path.relative_to(SOURCE).with_suffix(""), node.astext()
            tags = _source_tags(app, ".".join(name.parts))
            tag = next((t for t in (text, text.rpartition(".")[0]) if t in tags), None)
            place = f"#{tag}" if tag else ""
            uri = app.builder.get_relative_uri(page, f"_modules/{name.as_posix()}") + place
        elif path.parent == DOCS.parent / "examples":
            uri = app.builder.get_relative_uri(page, place_of(path))
        else:
            continue
        node.replace_self(nodes.reference("", "", *node.children, internal=True, refuri=uri))


def _source_tags(app: Any, module: str) -> dict[str, Any]:
    """Names that a module defines. Its source gets a page if it has none yet."""
    known = app.env._viewcode_modules
    if not known.get(module):
        code = ModuleAnalyzer.for_module(module)
        code.find_tags()
        known[module] = code.code, code.tags, {}, module
    return known[module][1]


def copy_mathjax(app: Any) -> None:
    """Put the one file of MathJax that is used beside the other static files."""
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    assert spec is not None
    assert spec.origin is not None
    target = Path(app.outdir) / "_static" / app.config.mathjax_path
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(spec.origin).parent / "static" / app.config.mathjax_path, target)


def setup(app: Any) -> dict[str, bool]:
    """Connect everything; Sphinx calls it."""
    app.connect("builder-inited", copy_mathjax)
    app.connect("builder-inited", draw_dark_thumbnails, priority=900)  # after the gallery
    app.connect("source-read", take_from_root)
    app.connect("source-read", name_extras)
    app.connect("source-read", end_blocks)
    app.connect("source-read", add_toctrees)
    app.connect("source-read", link_gallery)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", describe_data, priority=300)
    app.connect("autodoc-process-docstring", link_pages, priority=400)
    app.connect("env-updated", write_pages_with_search_terms)
    app.connect("doctree-resolved", link_names)
    app.connect("doctree-resolved", link_source)
    app.add_transform(SearchTerms)
    app.add_transform(DarkPictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
