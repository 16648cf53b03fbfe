"""Moments of a stream of batches, with checkpoints from which an interrupted pass continues."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest

from holrr import HOLRR, Moments
from problems import toy

CUTS = [0, 3, 4, 20, 21, 50, 80, 81, 100]


@pytest.fixture
def data():
    return toy(n=100, d0=4, shape=(3, 2))


def batches_of(X, Y, w=None):
    for start, stop in pairwise(CUTS):
        yield (X[start:stop], Y[start:stop], *(() if w is None else (w[start:stop],)))


def assert_equal(a, b):
    """The same to the last bit."""
    for field in fields(Moments):
        np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name))


@pytest.mark.parametrize("grams", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_give_the_moments_of_all_samples(grams, weighted, data):
    X, Y = data
    w = None
    if weighted:
        w = np.random.default_rng(0).uniform(size=100)
        w[4:20] = 0  # a batch without weight
    found = Moments.from_batches(batches_of(X, Y, w), grams)
    expected = Moments.from_arrays(X, Y, w, grams)
    assert found.n_samples == (84 if weighted else 100)
    np.testing.assert_allclose(found.Sxx, expected.Sxx, rtol=1e-12)
    np.testing.assert_allclose(found.Sxy, expected.Sxy, rtol=1e-10)
    assert found.syy == pytest.approx(expected.syy, rel=1e-12)
    if grams:
        for G, H in zip(found.response_grams, expected.response_grams, strict=True):
            np.testing.assert_allclose(G, H, rtol=1e-10)


def test_the_model_of_a_stream_equals_that_of_the_arrays(data):
    found = HOLRR(rank=2).fit_moments(Moments.from_batches(batches_of(*data)))
    np.testing.assert_allclose(found.coef_, HOLRR(rank=2).fit(*data).coef_, rtol=1e-10)


@pytest.mark.parametrize("stop", range(len(CUTS) - 1))
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("as_list", [False, True])
def test_an_interrupted_pass_continues_to_the_same_moments(stop, every, as_list, data, tmp_path):
    path, whole = tmp_path / "moments", Moments.from_batches(batches_of(*data))

    def broken():
        for number, batch in enumerate(batches_of(*data)):
            if number == stop:
                raise ConnectionError
            yield batch

    with pytest.raises(ConnectionError):
        Moments.from_batches(broken(), checkpoint=path, checkpoint_every=every)
    again = list(batches_of(*data)) if as_list else batches_of(*data)
    assert_equal(Moments.from_batches(again, checkpoint=path, checkpoint_every=every), whole)
    assert_equal(Moments.load(path), whole)
    with pytest.raises(ValueError, match=f"contains {len(CUTS) - 1} batches"):
        Moments.from_batches(again[:1] if as_list else iter(()), checkpoint=path)


def test_a_finished_pass_is_not_repeated(data, tmp_path):
    class Batches(list):
        reads = 0

        def __getitem__(self, i):
            self.reads += 1
            return list.__getitem__(self, i)

    batches = Batches(batches_of(*data))
    first = Moments.from_batches(batches, checkpoint=tmp_path / "moments")
    batches.reads = 0
    assert_equal(Moments.from_batches(batches, checkpoint=tmp_path / "moments"), first)
    assert batches.reads == 2  # the first and the last, which are compared with the checkpoint


def test_new_batches_are_added_to_those_of_the_checkpoint(data, tmp_path):
    batches = list(batches_of(*data))
    Moments.from_batches(batches[:5], checkpoint=tmp_path / "moments")
    assert_equal(
        Moments.from_batches(batches, checkpoint=tmp_path / "moments"),
        Moments.from_batches(batches),
    )


def test_checkpoints_of_several_machines_are_merged(data, tmp_path):
    batches = list(batches_of(*data))
    Moments.from_batches(batches[:4], checkpoint=tmp_path / "here")
    Moments.from_batches(batches[4:], checkpoint=tmp_path / "there")
    both = Moments.load(tmp_path / "here") + Moments.load(tmp_path / "there")
    np.testing.assert_allclose(both.Sxy, Moments.from_arrays(*data).Sxy, rtol=1e-10)


def test_batches_other_than_those_of_the_checkpoint_are_refused(data, tmp_path):
    path, batches = tmp_path / "moments", list(batches_of(*data))
    Moments.from_batches(batches, checkpoint=path)
    with pytest.raises(ValueError, match="belongs to other data"):
        Moments.from_batches(batches[1:], checkpoint=path)
    with pytest.raises(ValueError, match="written with response_grams=False"):
        Moments.from_batches(batches, True, checkpoint=path)
    for fewer in (batches[:3], iter(batches[:3])):
        with pytest.raises(ValueError, match="contains 8 batches, but batches has only 3"):
            Moments.from_batches(fewer, checkpoint=path)
    Moments.from_arrays(*data).save(path)
    with pytest.raises(ValueError, match="not a checkpoint"):
        Moments.from_batches(batches, checkpoint=path)


@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("number", [0, 4])
def test_other_inputs_outputs_or_weights_are_refused(as_list, which, number, data, tmp_path):
    """Also where X of the first batch is the same."""
    batches = list(batches_of(*data, np.ones(100)))
    Moments.from_batches(batches[:5], checkpoint=tmp_path / "moments")
    changed = list(batches[number])
    changed[which] = changed[which].copy()
    changed[which][-1] += 1.0
    batches[number] = tuple(changed)
    again = batches if as_list else iter(batches)
    with pytest.raises(ValueError, match="belongs to other data"):
        Moments.from_batches(again, checkpoint=tmp_path / "moments")


def test_all_batches_of_a_stream_are_compared_with_the_checkpoint(data, tmp_path):
    batches = list(batches_of(*data))
    Moments.from_batches(batches[:5], checkpoint=tmp_path / "moments")
    batches[2] = (batches[2][0], batches[2][1] + 1)
    with pytest.raises(ValueError, match="belongs to other data"):
        Moments.from_batches(iter(batches), checkpoint=tmp_path / "moments")


@pytest.mark.parametrize("as_list", [False, True])
def test_batches_of_other_sizes_are_refused(as_list, tmp_path):
    """Some of the same samples would be counted twice, or not at all."""
    X, Y = toy(n=120, d0=3, shape=(2,))
    cut = lambda ends: [(X[a:b], Y[a:b]) for a, b in pairwise(ends)]  # noqa: E731
    Moments.from_batches(cut([0, 30, 60, 90]), checkpoint=tmp_path / "moments")
    again = cut([0, 30, 40, 50, 120])
    with pytest.raises(ValueError, match="belongs to other data"):
        Moments.from_batches(again if as_list else iter(again), checkpoint=tmp_path / "moments")


def test_new_weights_are_refused(data, tmp_path):
    Moments.from_batches(list(batches_of(*data)), checkpoint=tmp_path / "moments")
    with pytest.raises(ValueError, match="belongs to other data"):
        Moments.from_batches(batches_of(*data, np.ones(100)), checkpoint=tmp_path / "moments")


def test_a_pass_over_tables_of_objects_continues(data, tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = data
    # New objects for each pass, since their values are compared.
    make = lambda: [(pd.DataFrame(x).astype(object), y) for x, y in batches_of(X, Y)]  # noqa: E731
    Moments.from_batches(make()[:5], checkpoint=tmp_path / "moments")
    found = Moments.from_batches(make(), checkpoint=tmp_path / "moments")
    assert_equal(found, Moments.from_batches(make()))


def test_a_pass_continues_after_a_bad_batch_was_corrected(data, tmp_path):
    batches = list(batches_of(*data))
    bad = batches[3][0], np.full_like(batches[3][1], np.nan)
    with pytest.raises(ValueError, match="in batch 3: y contains NaN"):
        Moments.from_batches([*batches[:3], bad], checkpoint=tmp_path / "moments")
    found = Moments.from_batches(batches, checkpoint=tmp_path / "moments")
    assert_equal(found, Moments.from_batches(batches))


@pytest.mark.parametrize("path", ["nowhere/moments", ""])
def test_a_checkpoint_that_cannot_be_written_is_refused_before_the_pass(path, data, tmp_path):
    def never():
        raise AssertionError("a batch was read")
        yield

    with pytest.raises(OSError, match="checkpoint cannot be written") as caught:
        Moments.from_batches(never(), checkpoint=tmp_path / path)
    assert str(tmp_path) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([], "at least one batch"),
        ([(np.ones((2, 1)), np.ones(2)), np.ones(3)], "in batch 1: a batch must be a pair"),
        ([(np.ones((2, 1)),) * 4], r"in batch 0: a batch must be .*; got tuple of length 4"),
        (None, r"batches must be an iterable of pairs .*; got NoneType"),
        ([(np.ones((2, 1)), np.ones(3))], "in batch 0: .*same number of samples"),
        (
            [(np.ones((2, 1)), np.ones(2)), (np.ones((2, 2)), np.ones(2))],
            "batch 1: X has 2 features",
        ),
        ([(np.ones((2, 1)), np.array([1, np.nan]))], "in batch 0: y contains NaN"),
        ([(np.ones((2, 1)), np.ones(2), np.zeros(2))], "positive weight"),
    ],
)
def test_errors_about_bad_batches_give_their_number(batches, message, tmp_path):
    with pytest.raises((ValueError, TypeError), match=message):
        Moments.from_batches(batches, checkpoint=tmp_path / "moments")


def test_arguments_of_a_checkpoint_are_checked(data):
    for wrong in (0, True, 1.5):
        with pytest.raises(ValueError, match=f"checkpoint_every must be .*; got {wrong}"):
            Moments.from_batches(batches_of(*data), checkpoint_every=wrong)
    with pytest.raises(TypeError, match="checkpoint must be the name of a file, or None; got"):
        Moments.from_batches(batches_of(*data), checkpoint=5)


def test_progress_draws_a_bar(data, capsys):
    pytest.importorskip("rich", reason="rich is not installed")
    Moments.from_batches(list(batches_of(*data)), progress=True)
    assert "100%" in capsys.readouterr().err
    Moments.from_batches(batches_of(*data))
    assert capsys.readouterr().err == ""


def test_batches_of_other_libraries_continue_from_a_checkpoint(xp, data, tmp_path):
    batches = [tuple(xp.asarray(a) for a in batch) for batch in batches_of(*data)]
    Moments.from_batches(batches[:3], checkpoint=tmp_path / "moments")
    found = Moments.from_batches(batches, checkpoint=tmp_path / "moments")
    assert xp.owns(found.Sxy)
    np.testing.assert_allclose(xp.to_numpy(found.Sxy), Moments.from_arrays(*data).Sxy, rtol=1e-10)


STREAM = """
import os, sys
import numpy as np
from holrr import Moments

def batches():
    for i in range(200):
        rng = np.random.default_rng(i)
        yield rng.normal(size=(20, 5)) + i, rng.normal(size=(20, 4, 3)) - i

def main(path):
    for line in sys.stdin:  # a new process for each line, but only one import for all
        pid = os.fork()
        if pid == 0:
            os.write(1, f"{os.getpid()}\\n".encode())
            Moments.from_batches(batches(), checkpoint=path, checkpoint_every=5)
            os._exit(0)
        os.write(1, f"{os.waitpid(pid, 0)[1]}\\n".encode())

if __name__ == "__main__":
    main(sys.argv[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_killed_pass_continues_until_it_is_complete(tmp_path):
    script, path = tmp_path / "stream.py", tmp_path / "moments"
    script.write_text(STREAM)
    names = {"__name__": "stream"}
    exec(STREAM, names)
    rng, kills, status = np.random.default_rng(0), 0, -1
    with subprocess.Popen(
        [sys.executable, str(script), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:
        while status != 0:
            process.stdin.write("go\n")
            pid = int(process.stdout.readline())
            if kills < 5:
                time.sleep(rng.uniform(0.01, 0.05))
                os.kill(pid, signal.SIGKILL)
            status = int(process.stdout.readline())
            kills += status != 0
            assert kills <= 5  # or it fails by itself
        process.stdin.close()
    assert kills >= 2
    assert_equal(Moments.load(path), Moments.from_batches(names["batches"]()))


def test_batches_with_other_names_are_refused():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = (
        pd.DataFrame(np.eye(4), columns=list("abcd")),
        pd.DataFrame(np.eye(4), columns=list("uvwx")),
    )
    assert Moments.from_batches([(X, Y), (X, Y)]).n_samples == 8
    for other, message in [
        ((X[list("dcba")], Y), "in batch 1: .*feature names.*same order"),
        ((X, Y[list("xwvu")]), "in batch 1: y has"),
        ((X, Y[::-1]), "in batch 1: the rows of X and y have different labels"),
        ((X, Y, pd.Series(np.ones(4))[::-1]), "in batch 1: the rows of X and sample_weight"),
    ]:
        with pytest.raises(ValueError, match=f"(?s){message}"):
            Moments.from_batches([(X, Y), other])


@pytest.mark.parametrize("length", [1, 3, 6])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_weights_of_a_batch_must_be_as_many_as_its_samples(length, value):
    """Zero weights, too, which do not count."""
    X, Y = toy(n=5, d0=2, shape=(2,))
    batches = [(X, Y), (X, Y, np.full(length, value))]
    with pytest.raises(ValueError, match=r"in batch 1: sample_weight.shape == .*expected \(5,\)"):
        Moments.from_batches(batches)
    with pytest.raises(ValueError, match="negative"):
        Moments.from_batches([(X, Y), (X, Y, [0, 0, 0, 0, -1e-3])])
    assert Moments.from_batches([(X, Y), (X, Y, np.zeros(5))]).n_samples == 5
