"""The reference: every public name is on a page of it, with an example that the doctests run."""

from __future__ import annotations

import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from docs.public import public_methods, public_names, resolve

INDEX = Path(__file__).parents[1] / "docs" / "reference" / "index.rst"
NAMES = public_names()
CLASSES = [name for name in NAMES if inspect.isclass(resolve(name))]
ESTIMATORS = [name for name in CLASSES if hasattr(resolve(name), "get_params")]
# What was public once and is not any more still has to be where it was.
FORMER = ["holrr.io.check_writable", "holrr.io.write_atomically"]


def examples(doc: str | None) -> list[doctest.Example]:
    """The examples of a docstring that are run."""
    found = doctest.DocTestParser().get_examples(doc or "")
    return [e for e in found if not e.options.get(doctest.SKIP)]


def shows(pattern: str, doc: str | None) -> bool:
    return any(re.search(pattern, example.source) for example in examples(doc))


def test_the_reference_lists_the_public_names_and_no_others():
    listed = re.findall(r"^   ([\w.]+)$", INDEX.read_text("utf-8"), flags=re.M)
    assert sorted(f"holrr.{name}" for name in listed if name != "core") == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example(name):
    value, (package, short) = resolve(name), name.rsplit(".", 1)
    if inspect.isclass(value):
        assert examples(value.__doc__)
    else:  # data have no docstring of their own; that of their package shows them
        doc = value.__doc__ if callable(value) else import_module(package).__doc__
        assert shows(rf"\b{short}\b", doc)


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_method_is_called_in_an_example_of_its_page(name):
    cls = resolve(name)
    methods = public_methods(cls)
    assert [method for method, doc in methods.items() if not doc] == []
    page = [cls.__doc__, *methods.values()]
    assert [m for m in methods if not any(shows(rf"\.{m}\(", doc) for doc in page)] == []


def section(doc: str, title: str) -> str:
    """Return the text of one section of a numpydoc docstring."""
    _, _, rest = doc.partition(f"{title}\n{'-' * len(title)}\n")
    return re.split(r"\n\n[A-Z][\w ]*\n-+\n", rest)[0]


def described(text: str) -> dict[str, str]:
    """Return the first line of the description of each entry that has a name and a type."""
    return dict(re.findall(r"^(\w+) : .+\n +(\S.*)$", text, flags=re.M))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter_of_an_estimator_has_a_type_and_a_sentence(name):
    cls = resolve(name)
    found = described(section(inspect.getdoc(cls), "Parameters"))
    assert list(found) == list(inspect.signature(cls).parameters)
    # A reader of one page need not open another one to learn what a parameter does.
    assert not [text for text in found.values() if re.match(r"(As in|See) `", text)]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_page_of_an_estimator_gives_the_shape_of_an_attribute_once(name):
    """The page has the type of an attribute, and the first paragraph of its property."""
    cls = resolve(name)
    typed = re.findall(r"^(\w+_) : .*shape", section(inspect.getdoc(cls), "Attributes"), re.M)
    docs = {attribute: inspect.getdoc(getattr(cls, attribute, None)) for attribute in typed}
    first = {attribute: doc.split("\n\n")[0] for attribute, doc in docs.items() if doc}
    assert [attribute for attribute, text in first.items() if "of shape" in text] == []


def test_entries_of_several_names_or_without_a_text_are_not_descriptions():
    entries = "a : int\n    Size.\nb, c\n    As in `X`.\nd : int"
    doc = f"Title.\n\nParameters\n----------\n{entries}\n\nNotes\n-----\ne : int\n    Other.\n"
    assert described(section(doc, "Parameters")) == {"a": "Size."}


def test_examples_that_are_skipped_do_not_count():
    assert not shows("r2", ">>> r2(y, y)  # doctest: +SKIP")
    assert shows("r2", ">>> r2(y, y)")


def test_what_estimators_take_from_scikit_learn_is_not_asked_for():
    methods = public_methods(resolve("holrr.HOLRR"))
    assert {"fit", "predict", "partial_fit", "transform", "save"} <= set(methods)
    assert not {"get_params", "set_fit_request", "predict_interval"} & set(methods)
    assert "predict_interval" in public_methods(resolve("holrr.HOLRRCV"))


@pytest.mark.parametrize("name", FORMER)
def test_former_public_names_still_work(name):
    assert resolve(name) is not None
    assert name not in NAMES
