"""The reference: every public name is on a page of it, with an example that the doctests run."""

from __future__ import annotations

import doctest
import inspect
import pydoc
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from docs.public import public_methods, public_names, resolve

INDEX = Path(__file__).parents[1] / "docs" / "reference" / "index.rst"
NAMES = public_names()
CLASSES = [name for name in NAMES if inspect.isclass(resolve(name))]
ESTIMATORS = [name for name in CLASSES if hasattr(resolve(name), "get_params")]
MODELS = [name for name in ESTIMATORS if hasattr(resolve(name), "predict")]
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


# ---------------------------------------------------------------- shared texts


@pytest.mark.parametrize("name", MODELS)
def test_help_begins_with_an_example(name):
    first = pydoc.render_doc(resolve(name), renderer=pydoc.plaintext).splitlines()[:30]
    shown = [line.strip(" |") for line in first]
    assert any(line.startswith(">>> ") and ".fit(" in line for line in shown)
    assert not shown[-1].startswith((">>>", "..."))  # the example ends there


@pytest.mark.parametrize("name", ["holrr.HOLRRCV", "holrr.KernelHOLRRCV"])
def test_help_of_the_largest_classes_is_short(name):
    assert len(pydoc.render_doc(resolve(name), renderer=pydoc.plaintext).splitlines()) <= 450


@pytest.mark.parametrize("name", MODELS)
def test_every_public_attribute_has_a_text(name):
    """What a fit sets is described, unless only other estimators describe it."""
    cls = resolve(name)
    text = section(inspect.getdoc(cls), "Attributes")
    entries = re.findall(r"^(\w+_) : .+\n +\S", text, flags=re.M)
    assert len(entries) == len(set(entries)) > 10
    model = cls(**({"alphas": [1.0], "cv": 2} if hasattr(cls(), "cv") else {}))
    rng = np.random.default_rng(0)
    model.fit(rng.normal(size=(20, 3)), rng.normal(size=(20, 3, 2)))
    fitted = {n for n in vars(model) if n.endswith("_") and not n.startswith("_")}
    of_core = {"objective_", "lower_bound_", "energy_", "solver_", "spectra_"}
    assert fitted - set(entries) <= of_core


def test_a_text_can_be_for_some_classes_only():
    texts = {
        name: described(section(inspect.getdoc(resolve(f"holrr.{name}")), "Parameters"))
        for name in ("RLS", "HOLRR", "RLSCV", "HOLRRCV", "KernelHOLRR", "LRR", "KernelLRR")
    }
    assert texts["LRR"]["rank"] == texts["KernelLRR"]["rank"] != texts["HOLRR"]["rank"]
    assert texts["HOLRR"]["rank"] == texts["KernelHOLRR"]["rank"]
    assert texts["RLS"]["blocks"] == texts["HOLRR"]["blocks"] != texts["HOLRRCV"]["blocks"]
    assert texts["RLSCV"]["blocks"] == texts["HOLRRCV"]["blocks"]
    assert len({text["scale_outputs"] for text in texts.values()}) == 1


def test_searches_begin_with_the_parameters_that_are_usually_changed():
    doc = inspect.getdoc(resolve("holrr.HOLRRCV"))
    table = doc.split("Usually changed:")[1].split("Parameters\n---")[0]
    names = re.findall(r"^``(\w+)``  +\S", table, flags=re.M)
    assert {"cv", "selection", "missing", "blocks"} <= set(names)
    assert set(names) <= set(described(section(doc, "Parameters")))
    assert "Usually changed" not in inspect.getdoc(resolve("holrr.HOLRR"))
