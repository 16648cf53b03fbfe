"""Shared fixtures: one estimator registry, one array library fixture, one hypothesis profile.

The workers of pytest-xdist share the cores, and the problems of the tests are small: more threads
of BLAS would only wait for one another. The number is set to one, also for the programs that tests
start, unless the environment says otherwise; tests of threads set their own (`three_threads`).
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import ThreadpoolController, threadpool_limits

from registry import ROWS

threadpool_limits(int(os.environ["OMP_NUM_THREADS"]), "blas")  # where NumPy was imported before

settings.register_profile(
    "holrr",
    derandomize=True,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("holrr")


def pytest_configure(config):
    text = "rows(*names): of the registry, only the rows for which all these attributes are true"
    config.addinivalue_line("markers", text)


def pytest_generate_tests(metafunc):
    """A test with the argument ``row`` runs for every estimator that is not exempt from it.

    With ``@pytest.mark.rows("batches")`` it runs for the rows whose attribute `batches` is true.
    """
    if "row" in metafunc.fixturenames:
        name = metafunc.function.__name__
        wanted = [a for mark in metafunc.definition.iter_markers("rows") for a in mark.args]
        rows = [row for row in ROWS if all(getattr(row, a) for a in wanted)]
        metafunc.parametrize("row", [_param(row, name) for row in rows])


def _param(row, name):
    reason = row.exempt.get(name)
    return pytest.param(row, id=row.id, marks=pytest.mark.skip(reason=reason) if reason else [])


@dataclass(frozen=True)
class Library:
    """An array library: how NumPy arrays are converted to it and back."""

    name: str
    xp: Any
    asarray: Callable[[np.ndarray], Any]
    to_numpy: Callable[[Any], np.ndarray]

    def owns(self, a: Any) -> bool:
        """Whether `a` is an array of this library, on its device."""
        like = self.asarray(np.ones(1))
        device = getattr(like, "device", None)
        return type(a) is type(like) and getattr(a, "device", None) == device


def _numpy():
    return Library("numpy", np, np.asarray, np.asarray)


def _strict():
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    return Library("array_api_strict", xp, xp.asarray, np.asarray)


def _strict_device():
    """A device whose arrays mix with no others and cannot be read by NumPy: like a GPU."""
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    device, host = xp.Device("device1"), xp.Device("CPU_DEVICE")
    return Library(
        "array_api_strict on device1",
        xp,
        lambda a: xp.asarray(a, device=device),
        lambda a: np.asarray(a.to_device(host)),
    )


def _torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return Library("torch", torch, lambda a: torch.asarray(a.copy()), lambda a: a.numpy())


def _torch_as_device(monkeypatch):
    """The same, treated as a GPU: the code for accelerators runs with the functions of torch."""
    library = replace(_torch(), name="torch as device")
    for name, module in list(sys.modules.items()):
        if name.startswith("holrr") and hasattr(module, "on_host"):
            on_host = lambda a: not isinstance(a, library.xp.Tensor)  # noqa: E731
            monkeypatch.setattr(module, "on_host", on_host)
    return library


LIBRARIES = {
    "numpy": _numpy,
    "array_api_strict": _strict,
    "array_api_strict_device1": _strict_device,
    "torch": _torch,
    "torch_as_device": _torch_as_device,
}
ON_DEVICE = ["array_api_strict_device1", "torch_as_device"]


def _library(name, monkeypatch) -> Library:
    """A library; small problems, as those of tests are, are solved on its device."""
    monkeypatch.setattr("holrr.core.namespace.HOST_ENTRIES", 0)
    make = LIBRARIES[name]
    return make(monkeypatch) if make is _torch_as_device else make()


@pytest.fixture(params=LIBRARIES)
def xp(request, monkeypatch) -> Library:
    """Each array library in turn; skipped where it is not installed."""
    return _library(request.param, monkeypatch)


@pytest.fixture(params=[name for name in LIBRARIES if name != "numpy"])
def other_xp(request, monkeypatch) -> Library:
    """Each array library but NumPy."""
    return _library(request.param, monkeypatch)


@pytest.fixture(params=ON_DEVICE)
def device_xp(request, monkeypatch) -> Library:
    """Each array library whose arrays are treated as those of an accelerator."""
    return _library(request.param, monkeypatch)


@pytest.fixture
def solver_fails(monkeypatch) -> Callable[[type[BaseException]], None]:
    """A function after whose call every fit raises an error before attributes are assigned."""
    from holrr.core.fit import Fit

    def fail_with(error):
        def fail(*args, **kwargs):
            raise error("the solver has failed")

        monkeypatch.setattr(Fit, "rescaled", fail)

    return fail_with


@pytest.fixture
def set_host_entries(monkeypatch) -> Callable[[int], None]:
    """A function that sets the size of problems that are solved on the host."""
    return lambda n: monkeypatch.setattr("holrr.core.namespace.HOST_ENTRIES", n)


@pytest.fixture
def use_solver(monkeypatch) -> Callable[[str], None]:
    """A function after whose call fits prefer a factorisation; "auto" changes nothing.

    "cholesky" and "svd" are for linear models, and "eigh" for kernels.
    """
    from holrr.core import spectral
    from holrr.kernel import problem
    from holrr.model_selection import sources

    def prefer(name):
        if name == "cholesky":
            monkeypatch.setattr(spectral, "prefers_cholesky", lambda m: True)
        elif name == "eigh":
            monkeypatch.setattr(problem, "_solve_cholesky", lambda *args: None)
        elif name == "svd":
            for module in (spectral, sources):
                monkeypatch.setattr(module, "keeps_digits", lambda *args: False)
        else:
            assert name == "auto"

    return prefer


@pytest.fixture
def small_budget(monkeypatch) -> Callable[[int], None]:
    """A function that sets the memory budget of searches, also below the least one."""
    return lambda n: monkeypatch.setattr("holrr.model_selection.search.search_budget", lambda: n)


class Limits:
    """Sizes of matrices above which other methods of the linear algebra are used."""

    NAMES = ("FULL_SPECTRUM_LIMIT", "HOST_LIMIT", "NUMPY_LIMIT")

    def __init__(self, monkeypatch):
        self.monkeypatch = monkeypatch

    def __getitem__(self, name: str) -> int:
        from holrr.core import namespace

        return getattr(namespace, name)

    def divide(self, by: int) -> None:
        """Make all limits smaller, while a test runs."""
        small = {name: self[name] // by for name in self.NAMES}
        for module in (m for name, m in list(sys.modules.items()) if name.startswith("holrr.")):
            for name, value in small.items():
                if hasattr(module, name):
                    self.monkeypatch.setattr(module, name, value)


@pytest.fixture(params=Limits.NAMES)
def limit(request) -> str:
    return request.param


@pytest.fixture
def limits(monkeypatch) -> Limits:
    return Limits(monkeypatch)


@pytest.fixture
def host_copies(monkeypatch) -> list[tuple[int, ...]]:
    """Shapes of the arrays of other libraries that are copied to NumPy while a test runs."""
    from holrr.core.namespace import to_numpy

    shapes: list[tuple[int, ...]] = []

    def recorded(a):
        if not isinstance(a, (np.ndarray, np.generic)):
            shapes.append(tuple(a.shape))
        return to_numpy(a)

    for name, module in list(sys.modules.items()):
        if name.startswith("holrr") and getattr(module, "to_numpy", None) is to_numpy:
            monkeypatch.setattr(module, "to_numpy", recorded)
    return shapes


@pytest.fixture
def three_threads():
    """Three threads for every BLAS that has threads, whatever the machine and its settings are."""
    with threadpool_limits(3, "blas"):
        libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        for library in libraries:
            if hasattr(library, "clear_controlling_thread"):  # so that other threads can set it
                library.clear_controlling_thread(force=True)
        threaded = [lib for lib in libraries if lib.info().get("threading_layer") != "disabled"]
        assert {lib.get_num_threads() for lib in threaded} == {3}
        yield
