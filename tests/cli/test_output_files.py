"""Where the command line writes, and what it does not write over."""

import os
import stat

import numpy as np
import pytest

import holrr
from holrr.cli import main

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="links, permissions, pipes and limits are those of POSIX"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(400, 4)), rng.normal(size=(400, 2, 3))
    np.save("X.npy", X)
    np.save("Y.npy", Y)
    np.savez("both.npz", X=X, Y=Y)
    holrr.RLS().fit(X, Y).save("m.npy")
    os.symlink("X.npy", "symbolic.npy")
    os.link("Y.npy", "hard.npy")
    (tmp_path / "sub").mkdir()
    return tmp_path


def contents(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.is_file()}


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "X.npy", "Y.npy", "-o", "X.npy"],
        ["fit", "X.npy", "Y.npy", "-o", "./sub/../Y.npy"],
        ["fit", "X.npy", "Y.npy", "-o", "symbolic.npy"],
        ["fit", "symbolic.npy", "Y.npy", "-o", "X.npy"],
        ["fit", "X.npy", "Y.npy", "-o", "hard.npy"],
        ["fit", "X.npy", "both.npz:Y", "-o", "both.npz"],
        ["fit", "X.npy", "both.npz:Y", "-o", "both.npz:X"],
        ["predict", "m.npy", "X.npy", "-o", "X.npy"],
        ["predict", "m.npy", "X.npy", "-o", "m.npy"],
        ["predict", "m.npy", "both.npz:X", "-o", "sub/../both.npz"],
    ],
    ids=" ".join,
)
def test_an_output_that_is_an_input_is_refused(folder, capfd, words):
    before = contents(folder)
    assert main(words) == 2
    assert "would replace the input" in capfd.readouterr().err
    assert contents(folder) == before


NEEDED = {".parquet": "pyarrow", ".feather": "pyarrow", ".xlsx": "openpyxl", ".nc": "h5netcdf"}
PREDICTIONS = ["P.npy", "P.npz", "P.csv", "P.tsv", *(f"P{suffix}" for suffix in NEEDED)]


def skip_where_it_cannot_be_written(name):
    needed = NEEDED.get(os.path.splitext(name)[1], "numpy")
    pytest.importorskip(needed, reason=f"{needed} is not installed")


@pytest.mark.parametrize("name", PREDICTIONS)
def test_predictions_are_written_through_links_and_keep_permissions(folder, name):
    skip_where_it_cannot_be_written(name)
    real = folder / "sub" / name
    real.touch()
    real.chmod(0o600)
    (folder / name).symlink_to(real)
    assert main(["predict", "m.npy", "X.npy", "-o", name]) == 0
    assert (folder / name).is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert real.stat().st_size > 400 * 8
    assert [p.name for p in (folder / "sub").iterdir()] == [name]


@pytest.mark.parametrize("command", [["fit", "X.npy", "Y.npy"], ["predict", "m.npy", "X.npy"]])
def test_pipes_and_folders_are_left_alone(folder, capfd, command):
    os.mkfifo("pipe.npy")
    (folder / "folder.npy").mkdir()
    for name, told in {"pipe.npy": "a pipe, not", "folder.npy": "is a folder"}.items():
        assert main([*command, "-o", name]) == 4
        assert told in capfd.readouterr().err
    assert (folder / "pipe.npy").is_fifo()


def test_an_unknown_format_is_an_error_before_the_computation(folder, capfd):
    assert main(["predict", "none.holrr", "X.npy", "-o", "P.txt"]) == 2
    assert "unknown format '.txt'" in capfd.readouterr().err


def test_the_longest_file_names_are_accepted(folder):
    model, output = "m" * 255, "P" * 251 + ".npy"
    assert main(["fit", "X.npy", "Y.npy", "--alpha", "1", "-o", model]) == 0
    assert main(["predict", model, "X.npy", "-o", output]) == 0
    assert np.load(output).shape == (400, 2, 3)


@pytest.mark.parametrize("name", ["m", *PREDICTIONS])
def test_a_full_disk_is_named_in_the_error(folder, capfd, name):
    """The limit on the size of files stands for the disk: the system refuses in the same way."""
    import resource

    skip_where_it_cannot_be_written(name)
    words = ["predict", "m.npy", "X.npy", "-o", name]
    if name == "m":
        words = ["fit", "X.npy", "Y.npy", "--model", "kernel-rls", "--alpha", "1", "-o", "m"]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = contents(folder)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8000, limits[1]))
    try:
        assert main(words) == 4
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    error = capfd.readouterr().err
    assert len(error.strip().splitlines()) == 1, error
    assert "File too large" in error
    assert contents(folder) == before


def test_control_c_is_one_line(folder, capfd, monkeypatch):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "load", interrupt)
    assert main(["predict", "m.npy", "X.npy", "-o", "P.npy"]) == 130
    assert capfd.readouterr() == ("", "holrr predict: interrupted\n")
    assert not (folder / "P.npy").exists()
