"""Which dimension of an object of xarray the samples are along."""

from __future__ import annotations

from typing import Any

from .labels import Labels, comes_from

__all__ = ["dimension_of_inputs", "dims_of", "is_dataset", "sample_dimension"]


def dims_of(A: Any) -> tuple[str, ...]:
    """The dimensions, in the order of the first variable that has all of them, or nearly."""
    if not is_dataset(A) or not len(A.data_vars):
        return tuple(A.dims)
    orders = sorted((v.dims for v in A.data_vars.values()), key=len, reverse=True)
    return tuple(dict.fromkeys(d for dims in orders for d in dims))


def is_dataset(A: Any) -> bool:
    return hasattr(type(A), "data_vars")


def sample_dimension(given: str | None, X: Any, y: Any, known: Labels | None) -> str | None:
    """The dimension of the samples: the one that is given, known, shared, or the first."""
    named = {name: dims_of(A) for name, A in (("X", X), ("y", y)) if comes_from(A, "xarray")}
    fitted = None if known is None else known.sample_dim
    if not named:
        return given or fitted
    if given is None and all(fitted in dims for dims in named.values()):
        return fitted
    if given is not None:
        for name, dims in named.items():
            if given not in dims:
                raise ValueError(
                    f"sample_dim={given!r} is no dimension of {name}, which has {dims}."
                )
        return given
    if len(named) == 1:
        ((name, dims),) = named.items()
        if name == "X" and known is not None:
            return dimension_of_inputs(X, known)
        if not dims:
            raise ValueError(f"{name} has no dimension, and needs one for samples.")
        return dims[0]
    of_x, of_y = named["X"], named["y"]
    shared = tuple(d for d in of_x if d in of_y)
    if len(shared) == 1 or (shared and of_x[0] == of_y[0]):
        return shared[0]
    what, hint = "none", "rename that of the samples in one of them."
    if shared:
        what, hint = f"{shared}", "say which of them the samples are along with sample_dim=..."
    raise ValueError(f"X has dimensions {of_x} and y has {of_y}, which share {what}: {hint}")


def dimension_of_inputs(X: Any, labels: Labels) -> str:
    """The sample dimension of new inputs: that of the fit, or the one that is no feature's."""
    dims = dims_of(X)
    if labels.sample_dim in dims:
        return labels.sample_dim
    if not labels.inputs:
        return dims[0]
    left = [d for d in dims if not any(d in grid.dims for grid in labels.inputs)]
    if len(left) != 1:
        beside = tuple(d for grid in labels.inputs for d in grid.dims)
        raise ValueError(
            f"X has dimensions {dims}; one is needed for the samples, {labels.sample_dim!r} as in "
            f"the fit, beside {beside}. A single sample gets it with "
            f"X.expand_dims({labels.sample_dim!r})."
        )
    return left[0]
