"""Files that are damaged, cut off, foreign or crafted are refused; how files are written."""

from __future__ import annotations

import io
import os
import pickle
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest

import crafted
import holrr
import pipelines
from holrr import HOLRR, RLS, Moments, diagnostics, load, save
from holrr.io import TRUSTED, write_atomically

STORED = Path(__file__).with_name("stored")


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    return HOLRR(rank=1).fit(rng.normal(size=(8, 2)), rng.normal(size=(8, 2)))


@pytest.fixture
def path(tmp_path, model):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def moments():
    rng = np.random.default_rng(0)
    return Moments.from_arrays(rng.normal(size=(8, 2)), rng.normal(size=(8, 2)))


# ---------------------------------------------------------------- stored files


def test_the_files_of_this_release_load():
    """Files that `tests/io/stored/write.py` wrote; files of later releases are added."""
    x = np.linspace(-1, 1, 24).reshape(4, 3, 2)
    for name in ("search-1", "pipeline-1"):
        found = load(STORED / f"{name}.holrr")
        expected = np.load(STORED / f"{name}.npy")
        inputs = x if name == "search-1" else x.reshape(4, 6)
        np.testing.assert_allclose(np.asarray(found.predict(inputs)), expected, rtol=1e-12)
    assert load(STORED / "search-1.holrr").labels_.outputs.dims == ("month", "height")
    found = Moments.load(STORED / "moments-1.npz")
    assert list(found.feature_names) == ["a", "b", "ü"]
    assert (found.n_samples, found.weight) == (12, 12.0)


# ---------------------------------------------------------------- damage


def test_flipped_bits_are_detected(path, model):
    """`tests/fuzz/run.py --family damaged_files --cases 250` damages 5,000 files."""
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for at in rng.permutation(len(whole))[:300]:
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
    assert refused > 250


def test_flipped_bits_of_moments_are_detected(tmp_path):
    path = tmp_path / "moments"
    moments().save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for at in rng.permutation(len(whole))[:300]:
        broken = bytearray(whole)
        broken[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        try:
            again = Moments.load(path)
        except ValueError:
            refused += 1
        else:
            np.testing.assert_array_equal(again.Sxy, moments().Sxy)
    assert refused > 150


def test_every_cut_off_file_is_refused(path):
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="damaged"):
            load(path)


@pytest.mark.parametrize("content", [b"", b"P", b"hello", pickle.dumps([1]), b"PK", b"PK" * 99])
def test_files_of_other_kinds_are_refused(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    for read in (load, Moments.load):
        with pytest.raises(ValueError, match="damaged"):
            read(tmp_path / "file")


def test_models_and_moments_are_not_confused(path, tmp_path):
    moments().save(tmp_path / "moments")
    with pytest.raises(ValueError, match=r"no file of holrr\.save"):
        load(tmp_path / "moments")
    with pytest.raises(ValueError, match=r"no file of Moments\.save"):
        Moments.load(path)


def test_a_missing_file_is_an_error_of_its_own_kind(tmp_path):
    for read in (load, Moments.load):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "none")


def test_a_newer_version_asks_for_an_update(path):
    file = crafted.Contents.of(path)
    file.tree["content"]["content"]["holrr_state"] = crafted.plain(99)
    file.write(path)
    with pytest.raises(ValueError, match=r"state of HOLRR has version 99, but .*Update holrr"):
        load(path)


# ---------------------------------------------------------------- files that name code


def test_crafted_files_are_refused_and_run_nothing(tmp_path):
    """`tests/fuzz/run.py --family crafted_files --cases 500` writes 500 files."""
    X, Y = pipelines.objects()
    path = tmp_path / "file"
    save(pipelines.of_all_kinds().fit(X, Y), path)
    original = crafted.Contents.of(path)
    repr(load(path))  # imports what loading needs
    for seed in range(60):
        crafted.craft(np.random.default_rng(seed), original).write(path)
        with pipelines.watching() as events, pytest.raises(ValueError, match="damaged, or no file"):
            load(path)
        assert not events


@pytest.mark.parametrize("attack", crafted.EVIL, ids=lambda attack: attack.__name__)
def test_nodes_that_name_code_are_refused_as_a_parameter(attack, path):
    original = crafted.Contents.of(path)
    for seed in range(10):
        file = original.copy()
        file.tree["content"]["content"]["alpha"] = attack(np.random.default_rng(seed))
        file.write(path)
        with pipelines.watching() as events, pytest.raises(ValueError, match="damaged, or no file"):
            load(path)
        assert not events


def test_a_file_cannot_be_larger_in_memory_than_on_disk(path):
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for member, size in (("schema.json", 10**8), (next(iter(members)), 10**6)):
        larger = {**members, member: members[member] + size * b" "}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in larger.items():
                archive.writestr(name, data)
        with pytest.raises(ValueError, match="larger than the file"):
            load(path)


def test_moments_cannot_be_larger_in_memory_than_on_disk(tmp_path):
    moments().save(tmp_path / "moments")
    with np.load(tmp_path / "moments") as archive:
        arrays = {**archive, "array_0": np.zeros(10**5)}
    np.savez_compressed(tmp_path / "file.npz", **arrays)
    with pytest.raises(ValueError, match="larger than the file"):
        Moments.load(tmp_path / "file.npz")


def test_pickled_moments_are_not_unpickled(tmp_path):
    np.savez(tmp_path / "file.npz", tree=np.array([crafted.Owned()], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        Moments.load(tmp_path / "file.npz")


def test_the_list_of_classes_has_every_public_estimator_and_splitter_and_nothing_else():
    public = {
        f"{cls.__module__}.{cls.__name__}"
        for module in (holrr, holrr.data, diagnostics)
        for name in module.__all__
        if isinstance(cls := getattr(module, name), type) and hasattr(cls, "get_params")
    }
    public.add("holrr.model_selection.splitters.BlockKFold")
    assert {name for name in TRUSTED if name.startswith("holrr.")} == public


@pytest.mark.parametrize("value", [[1], None, np.ones(2), "model", HOLRR, moments()], ids=str)
def test_objects_of_other_kinds_are_not_saved(value, tmp_path):
    with pytest.raises(TypeError, match="save accepts an estimator"):
        save(value, tmp_path / "file")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", [None, 3, io.BytesIO()], ids=["None", "3", "file"])
def test_a_path_that_is_no_name_of_a_file_is_refused(path):
    message = f"path must be the name of a file; got an object of {type(path).__name__}"
    for use in (lambda: save(RLS(), path), lambda: load(path)):
        with pytest.raises(TypeError, match=message):
            use()


# ---------------------------------------------------------------- where a file is written


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_an_error_keeps_the_old_file(path):
    before = path.read_bytes()
    with pytest.raises(TypeError, match=r"cannot be saved: it contains builtins\.len"):
        save(HOLRR(rank=len), path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["model"]


def test_a_new_file_has_the_usual_permissions_and_a_link_stays_one(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "model")
    save(RLS(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "plain").touch()
    assert mode(tmp_path / "real" / "model") == mode(tmp_path / "plain")
    assert isinstance(load(tmp_path / "real" / "model"), RLS)


@pytest.mark.parametrize("before", [0o600, 0o666, 0o640])
def test_a_new_file_inherits_the_permissions_of_the_old_one(before, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(before)
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link"):
        save(RLS(), tmp_path / name)
        assert mode(tmp_path / "file") == before


def test_a_private_file_is_private_while_it_is_written(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(0o600)
    modes = []
    write_atomically(tmp_path / "file", lambda file: modes.append(mode(Path(file.name))))
    assert modes == [0o600]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root may give files away")
def test_a_new_file_inherits_the_owner_of_the_old_one(tmp_path):
    (tmp_path / "file").touch()
    os.chown(tmp_path / "file", 12345, 23456)
    save(RLS(), tmp_path / "file")
    found = (tmp_path / "file").stat()
    assert (found.st_uid, found.st_gid) == (12345, 23456)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this system")
def test_only_regular_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.iterdir())
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="not a regular file"):
            save(RLS(), tmp_path / name)
    for name in ("folder", "loop", "pipe/file"):
        with pytest.raises(OSError):
            save(RLS(), tmp_path / name)
    with pytest.raises(FileNotFoundError, match=r"the folder .*none does not exist"):
        save(RLS(), tmp_path / "none" / "file")
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_file_is_not_replaced(tmp_path):
    (tmp_path / "file").touch(mode=0o400)
    with pytest.raises(PermissionError, match="read-only"):
        save(RLS(), tmp_path / "file")


@pytest.mark.parametrize("name", ["a" * 255, "ü" * 127])
def test_files_may_have_the_longest_names(name, tmp_path):
    save(RLS(), tmp_path / name)
    assert isinstance(load(tmp_path / name), RLS)
    assert [p.name for p in tmp_path.iterdir()] == [name]
