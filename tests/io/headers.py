"""Files with another header: what other versions wrote, or what an attacker might."""

from __future__ import annotations

import hashlib
import json
import zipfile
from typing import Any

import numpy as np

# Names of private fitted attributes in version 2 and before.
RENAMED = {
    "_hat": "_fitted_hat",
    "_noise": "_fitted_noise",
    "_intervals": "_fitted_intervals",
    "_features": "_fitted_features",
}
# Parameters that estimators did not have in version 3, and searches in version 2.
NEW_PARAMETERS_IN_4 = {"keep_held_out", "loss"}
NEW_PARAMETERS = {"max_rank", "max_iter", "tol", "solver"}
# Fitted attributes that a search of version 3 has, and that it had from its final model before.
OF_MODEL = {"tucker_", "intercept_", "solver_", "objective_", "lower_bound_", "energy_"}
OF_MODEL |= {"spectra_", "n_iter_", "n_dropped_", "rank_", "_hat", "_noise", "alpha_"}
OF_MODEL |= {"penalty_", "beta_", "gamma_", "kernel_params_", "history_", "penalty_max_"}
# What version 1 did not have.
NEW_IN_2 = {"_fitted_hat", "_fitted_noise", "_fitted_intervals", "labels_", "squares"}
NEW_PARAMETERS_IN_2 = {"output_shape", "sample_dim", "missing", "output_weight"}


def header_of(path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("header.json"))


def rewrite(path, arrays=None, **changes) -> None:
    """The same file with other arrays (as bytes) and entries of the header, and their checksums."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members.pop("header.json"))
    for name, data in (arrays or {}).items():
        members[f"{name}.npy"] = data
        header["sha256"][name] = hashlib.sha256(data).hexdigest()
    header.update(changes)
    text = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {**members, "header.json": text}.items():
            archive.writestr(name, data)
        archive.comment = hashlib.sha256(text).hexdigest().encode()


def downgrade(path, version: int) -> None:
    """Rewrite a file of version 4 as version 3, 2 or 1 would have written it.

    Stacks of these versions mix ranks at one penalty, and those of the file have to do so, too.
    """
    with np.load(path) as arrays:
        tree = _older(header_of(path)["object"], version, arrays)
    rewrite(path, version=version, object=tree)


def _older(tree: Any, version: int, arrays: Any) -> Any:
    if isinstance(tree, list):
        return [_older(item, version, arrays) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if tree.get("$") == "record" and tree["class"] == "Moments":
        new = ("feature_names", "labels", "weight_squares")
        state = {k: v for k, v in tree["state"].items() if k not in new}
        if version == 1:
            state = {k: v for k, v in state.items() if k not in NEW_IN_2}
        return {**tree, "state": state}
    if tree.get("$") != "estimator":
        return {key: _older(value, version, arrays) for key, value in tree.items()}
    tree = _version_3(tree, arrays)
    if version == 3:
        return {**tree, "state": _older(tree["state"], version, arrays)}
    params, state = dict(tree["params"]), dict(tree["state"])
    if "best_estimator_" in state:
        params = {k: v for k, v in params.items() if k not in _new_parameters(tree["class"])}
        if params.get("selection") == "auto":
            params["selection"] = "stack"
        if "stack_ranks_" in state:
            state["stack_place_"] = {"$": "tuple", "items": _stack_place(state, arrays)}
        state = {k: v for k, v in state.items() if k not in OF_MODEL}
    if params.get("missing") == "ignore":
        params["missing"] = "fill"
    state.pop("_output_weight", None)
    noise = state.get("_noise")
    if isinstance(noise, dict) and noise["$"] == "tuple":
        items = [
            [name, item] for name, item in zip(("root", "weight"), noise["items"], strict=True)
        ]
        state["_noise"] = {"$": "dict", "items": items}
    state = {
        RENAMED.get(name, name): _older(value, version, arrays) for name, value in state.items()
    }
    if version == 1:
        params = {k: v for k, v in params.items() if k not in NEW_PARAMETERS_IN_2}
        state = {k: v for k, v in state.items() if k not in NEW_IN_2}
    return {**tree, "params": params, "state": state}


def _version_3(tree: dict[str, Any], arrays: Any) -> dict[str, Any]:
    """An estimator as version 3 wrote it: one description for the best model and the stack."""
    params = {k: v for k, v in tree["params"].items() if k not in NEW_PARAMETERS_IN_4}
    state = dict(tree["state"])
    if "cv_results_" not in state:
        return {**tree, "params": params}
    results = dict(state["cv_results_"]["items"])
    held_out = results.pop("held_out_mse", None)
    if held_out is not None:
        state["best_score_"] = -held_out
    best = dict(state.pop("best_params_", {"items": []})["items"])
    if "stack_ranks_" in state:
        alphas = arrays[state.pop("stack_alphas_")["name"]]
        if not (np.all(alphas == state["alpha_"]) and all(state["stack_ranks_"]["items"])):
            raise ValueError("only stacks of ranks at one penalty can be written in this version")
        state |= {"stack_mse_": 0.9 * held_out, "stack_gap_": 1e-9, "rank_": best["rank"]}
        results["stack_path_mse"] = state["stack_weights_"]
    state["cv_results_"] = {"$": "dict", "items": [list(item) for item in results.items()]}
    return {**tree, "params": params, "state": state}


def _new_parameters(name: str) -> set[str]:
    if name.startswith(("TraceNorm", "MLMTNC")):
        return set()
    return NEW_PARAMETERS - ({"solver"} if not name.startswith("Kernel") else set())


def _stack_place(state: dict[str, Any], arrays: Any) -> list[int]:
    """Candidate and penalty of a stack, as indices; linear searches have no candidates."""
    model, alphas = state["best_estimator_"]["params"], arrays[state["alphas_"]["name"]]
    place = [int(np.flatnonzero(alphas == model["alpha"])[0])]
    if "kernels_" in state:
        gammas = [dict(kernel["items"])["gamma"] for kernel in state["kernels_"]["items"]]
        place.insert(0, gammas.index(model["gamma"]))
    return place
