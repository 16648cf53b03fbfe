"""Files that are damaged, cut off, foreign, hostile or too new are refused with a reason."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import pickle
import stat
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from headers import rewrite

from holrr import HOLRR, RLS, Moments
from holrr.io import _atomic, load, save, write_atomically
from holrr.io._container import VERSION, read_container, write_container


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    return HOLRR(rank=1).fit(rng.normal(size=(8, 2)), rng.normal(size=(8, 2)))


@pytest.fixture
def path(tmp_path, model):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def npy(text: str, data: bytes = b"") -> bytes:
    """An array of NumPy's format whose header is any text at all."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def declared(shape: str, descr: str = "'<f8'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}"


def test_numpy_opens_the_file_without_pickle(path):
    with np.load(path, allow_pickle=False) as arrays:
        header = json.loads(arrays["header.json"])
        assert set(header["sha256"]) < set(arrays.files)
        assert header["version"] == VERSION


def test_flipped_bits_are_detected(path, model):
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
    with pytest.raises(ValueError, match=rf"version {VERSION + 1} .* holrr 99\.0; update holrr"):
        load(path)


def test_another_format_is_refused(path):
    rewrite(path, format="onnx")
    with pytest.raises(ValueError, match="not a holrr file"):
        load(path)


def test_a_missing_file_is_an_error_of_its_own_kind(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")


def test_a_model_does_not_load_as_moments(path):
    with pytest.raises(ValueError, match="contains a HOLRR, not moments"):
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
    with pytest.raises(ValueError, match="cannot be read by holrr"):
        load(path)
    assert not (tmp_path / "owned").exists()


def test_pickled_arrays_are_not_unpickled(tmp_path):
    class Owned:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "owned"),))

    buffer = io.BytesIO()
    np.save(buffer, np.array([Owned()], dtype=object), allow_pickle=True)
    save(RLS(), tmp_path / "file")
    rewrite(tmp_path / "file", arrays={"0": buffer.getvalue()})
    with pytest.raises(ValueError, match="damaged"):
        load(tmp_path / "file")
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    "tree",
    [
        [],
        None,
        "HOLRR",
        {"$": "list", "items": []},
        {"$": "array", "name": "0"},
        {"$": "splitter", "class": "KFold", "state": {}},
        {"$": "float", "value": 10**400},
        {"$": "scalar", "name": "0"},
    ],
    ids=range(8),
)
def test_only_estimators_moments_and_tucker_tensors_are_loaded(path, tree):
    for changes in ({"object": tree}, {"object": inside(tree), "notes": []}):
        rewrite(path, **changes)
        with pytest.raises(ValueError, match="cannot be read by holrr"):
            load(path)


def inside(tree):
    return {"$": "estimator", "class": "RLS", "params": {}, "state": {"coef_": tree}}


@pytest.mark.parametrize("value", [[1], None, np.ones(2), "model", HOLRR], ids=str)
def test_objects_of_other_kinds_are_not_saved(value, tmp_path):
    with pytest.raises(TypeError, match="save accepts an estimator"):
        save(value, tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_a_tucker_tensor_is_saved_and_loaded(model, tmp_path):
    save(model.tucker_, tmp_path / "file")
    np.testing.assert_array_equal(load(tmp_path / "file").to_dense(), model.coef_)


# ---------------------------------------------------------------- files that declare large sizes


def assert_refused_in_little_memory(path):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"damaged|cannot be read"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "array",
    [
        npy(declared("(4294967296,)")),
        npy(declared("(300000000,)"), bytes(8)),
        npy(declared("(-1,)"), bytes(8)),
        npy(declared("(-1, -1)"), bytes(8)),
        npy(declared("(4294967296, 4294967296, 0, 9223372036854775808)")),
        npy(declared("(1000000000,)", "'|S0'")),
        npy(declared("(1,)", "('<f8', (1,))"), bytes(8)),
        npy(declared("(1,)", "[('a', '<f8')]"), bytes(8)),
        npy(declared("-" * 9000 + "1")),
        npy(declared("[" * 5000)),
        npy(declared("1" + "+1j" * 3000)),
        b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1),
        b"\x93NUMPY\x03\x00" + struct.pack("<I", 2**32 - 1),
    ],
    ids=range(13),
)
def test_an_array_cannot_be_larger_than_its_bytes(path, array):
    rewrite(path, arrays={"0": array})
    assert_refused_in_little_memory(path)


MASKED = {"$": "masked", "data": {"$": "array", "name": "data"}, "fill_value": 0}


@pytest.mark.parametrize(
    "tree",
    [
        {"$": "objects", "shape": [300_000_000], "items": []},
        {"$": "objects", "shape": [2**40], "items": []},
        {"$": "list", "items": 50 * [{**MASKED, "mask": {"$": "array", "name": "mask"}}]},
        {"$": "list", "items": 50 * [{**MASKED, "mask": True}]},
        {"$": "list", "items": 50 * [{**MASKED, "mask": MASKED["data"]}]},
    ],
    ids=range(5),
)
def test_an_object_cannot_be_larger_than_its_text(path, tree):
    def saved(array):
        buffer = io.BytesIO()
        np.save(buffer, array)
        return buffer.getvalue()

    arrays = {"data": saved(np.zeros(2**20, dtype="u1")), "mask": saved(np.array(True))}
    rewrite(path, arrays=arrays, object=inside(tree))
    assert_refused_in_little_memory(path)


@pytest.mark.parametrize("text", [b"[" * 10**5, b'{"a":' * 10**5, b"1" * 10**5, b"\xff" * 9])
def test_a_header_that_is_not_valid_json_is_refused(path, text):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", text)
        archive.comment = hashlib.sha256(text).hexdigest().encode()
    assert_refused_in_little_memory(path)


@pytest.mark.parametrize("sums", [5, ["0"], {"0": 1}, {"../0": "a"}, None, "0"], ids=str)
def test_malformed_checksums_are_refused(path, sums):
    rewrite(path, sha256=sums)
    assert_refused_in_little_memory(path)


def test_members_that_share_their_bytes_are_refused(path):
    """Each array contains the next one: their sizes add up to the square of the file size."""
    rewrite(path, object={"$": "list", "items": []}, sha256={})
    content, starts = b"", []
    for number in reversed(range(50)):
        name = f"{number}.npy".encode()
        data = npy(declared(f"({len(content)},)", "'|u1'"), content)
        sizes = (len(data), len(data), len(name))
        head = struct.pack("<4s5H3I2H", b"PK\3\4", 45, 0, 0, 0, 33, zlib.crc32(data), *sizes, 0)
        content = head + name + data
        starts = [(n, d, len(content) - len(d)) for n, d, _ in [(name, data, 0), *starts]]
    forged = io.BytesIO()
    with zipfile.ZipFile(forged, "w") as archive:
        archive.fp.write(content)
        for name, data, begin in starts:
            info = zipfile.ZipInfo(name.decode())
            info.header_offset = begin - 30 - len(name)
            info.file_size = info.compress_size = len(data)
            info.CRC = zlib.crc32(data)
            archive.filelist.append(info)
            archive.NameToInfo[info.filename] = info
        archive.start_dir = archive.fp.tell()
        sums = {n.decode()[:-4]: hashlib.sha256(d).hexdigest() for n, d, _ in starts}
        header = {"format": "holrr", "version": 1, "holrr": "1", "notes": {}, "sha256": sums}
        text = json.dumps({**header, "object": inside(None)}).encode()
        archive.writestr("header.json", text)
        archive.comment = hashlib.sha256(text).hexdigest().encode()
    # Newer Pythons refuse such a file themselves.
    with zipfile.ZipFile(forged) as archive, contextlib.suppress(zipfile.BadZipFile):
        assert archive.read("3.npy") == starts[3][1], "the forged file cannot be read"
    path.write_bytes(forged.getvalue())
    with pytest.raises(ValueError, match="overlaps"):
        load(path)


def test_compressed_members_are_refused(path):
    with zipfile.ZipFile(path) as archive:
        members, comment = {n: archive.read(n) for n in archive.namelist()}, archive.comment
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.comment = comment
    with pytest.raises(ValueError, match="is compressed"):
        load(path)


def test_arrays_of_objects_are_never_written(tmp_path):
    with pytest.raises(TypeError, match="dtype object"):
        write_container(tmp_path / "file", {}, {"a": np.array([None])})
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- where a file is written


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_usual_permissions_and_a_link_stays_one(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "model")
    save(RLS(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "plain").touch()
    assert mode(tmp_path / "real" / "model") == mode(tmp_path / "plain")
    assert read_container(tmp_path / "real" / "model")[0]["format"] == "holrr"


@pytest.mark.parametrize("before", [0o600, 0o666, 0o640])
def test_a_new_file_inherits_the_permissions_of_the_old_one(before, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(before)
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link"):
        save(RLS(), tmp_path / name)
        assert mode(tmp_path / "file") == before


def test_a_private_file_is_private_while_it_is_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(0o600)
    modes = []
    monkeypatch.setattr(_atomic, "_inherit", lambda path, old: modes.append(mode(path)))
    write_atomically(tmp_path / "file", lambda file: modes.append(mode(Path(file.name))))
    assert modes == [0o600, 0o600]


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
    for name in ("folder", "loop", "pipe/file", "none/file"):
        with pytest.raises(OSError):
            save(RLS(), tmp_path / name)
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
