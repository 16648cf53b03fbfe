"""Files that are damaged, cut off, foreign, hostile or too new are refused, and said to be so."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import stat
import zipfile

import numpy as np
import pytest

from holrr import HOLRR, RLS, Moments
from holrr.io import load, save
from holrr.io._container import VERSION, read_container, write_container


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    return HOLRR(rank=1).fit(rng.normal(size=(8, 2)), rng.normal(size=(8, 2)))


@pytest.fixture
def path(tmp_path, model):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def rewrite(path, **changes):
    """The same file with another header, its checksum made to fit."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["header.json"])
    header.update(changes)
    text = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {**members, "header.json": text}.items():
            archive.writestr(name, data)
        archive.comment = hashlib.sha256(text).hexdigest().encode()


def test_numpy_opens_the_file_without_pickle(path):
    with np.load(path, allow_pickle=False) as arrays:
        header = json.loads(arrays["header.json"])
        assert set(header["sha256"]) < set(arrays.files)
        assert header["version"] == VERSION


def test_no_flipped_byte_goes_unnoticed(path, model):
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for at in rng.permutation(len(whole))[:1500]:
        broken = bytearray(whole)
        broken[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        try:
            again = load(path)
        except ValueError:
            refused += 1
        else:  # bytes that nothing is read from, such as the time of writing
            np.testing.assert_array_equal(again.coef_, model.coef_)
            assert again.get_params() == model.get_params()
    assert refused > 1000


def test_every_cut_off_file_is_refused(path):
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"damaged|not a holrr file"):
            load(path)


@pytest.mark.parametrize("content", [b"", b"P", b"hello", pickle.dumps([1]), b"PK", b"PK" * 99])
def test_files_of_other_kinds_are_refused(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=r"not a holrr file|damaged"):
        load(tmp_path / "file")


def test_other_npz_files_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.ones(3))
    with pytest.raises(ValueError, match=r"not a holrr file: it has no header\.json"):
        load(tmp_path / "a.npz")


def test_a_newer_version_asks_for_an_update(path):
    rewrite(path, version=VERSION + 1, holrr="99.0")
    with pytest.raises(ValueError, match=r"version 2 .* holrr 99\.0, so update holrr"):
        load(path)


def test_another_format_is_refused(path):
    rewrite(path, format="onnx")
    with pytest.raises(ValueError, match="not a holrr file"):
        load(path)


def test_a_missing_file_is_just_that(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")


def test_models_are_no_moments(path):
    with pytest.raises(ValueError, match="holds a HOLRR, not moments"):
        Moments.load(path)


@pytest.mark.parametrize(
    "tree",
    [
        {"$": "estimator", "class": "Popen", "params": {"args": "touch owned"}, "state": {}},
        {"$": "estimator", "class": "subprocess.Popen", "params": {}, "state": {}},
        {"$": "estimator", "class": "__version__", "params": {}, "state": {}},
        {"$": "estimator", "class": "Tucker", "params": {}, "state": {}},
        {"$": "estimator", "class": "HOLRR", "params": {"new_parameter": 1}, "state": {}},
        {"$": "record", "class": "HOLRR", "state": {}},
        {"$": "record", "class": "Tucker", "state": {"core": 1}},
        {"$": "splitter", "class": "GridSearchCV", "state": {}},
        {"$": "splitter", "class": "cross_val_score", "state": {}},
        {"$": "code", "value": "1"},
        {"$": ["list"]},
        {"$": "array", "name": "no such"},
        {"no kind": 1},
    ],
)
def test_a_file_cannot_name_foreign_classes_or_kinds(path, tree, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rewrite(path, object=tree)
    with pytest.raises(ValueError, match="cannot read"):
        load(path)
    assert not (tmp_path / "owned").exists()


def test_pickled_arrays_inside_are_not_unpickled(tmp_path):
    class Owned:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "owned"),))

    buffer = io.BytesIO()
    np.save(buffer, np.array([Owned()], dtype=object), allow_pickle=True)
    save(RLS(), tmp_path / "file")
    rewrite(tmp_path / "file", sha256={"0": hashlib.sha256(buffer.getvalue()).hexdigest()})
    with zipfile.ZipFile(tmp_path / "file", "a") as archive:
        archive.writestr("0.npy", buffer.getvalue())
    with pytest.raises(ValueError, match="damaged"):
        load(tmp_path / "file")
    assert not (tmp_path / "owned").exists()


def test_compressed_members_are_refused(path):
    with zipfile.ZipFile(path) as archive:
        members, comment = {n: archive.read(n) for n in archive.namelist()}, archive.comment
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.comment = comment
    with pytest.raises(ValueError, match="compressed"):
        load(path)


def test_arrays_of_objects_are_never_written(tmp_path):
    with pytest.raises(TypeError, match="dtype object"):
        write_container(tmp_path / "file", {}, {"a": np.array([None])})
    assert not list(tmp_path.iterdir())


def test_a_file_keeps_usual_permissions_and_links(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "model")
    save(RLS(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "plain").touch()
    mode = lambda p: stat.S_IMODE(p.stat().st_mode)  # noqa: E731
    assert mode(tmp_path / "real" / "model") == mode(tmp_path / "plain")
    assert read_container(tmp_path / "real" / "model")[0]["format"] == "holrr"
