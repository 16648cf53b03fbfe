"""Same seed, same numbers: whatever the number of processes, and after an interruption."""

import json
from contextlib import contextmanager

import pytest
from tiny import tiny_synthetic

from paper import synthetic
from paper.running import Experiment, run, seed_for
from paper.store import Store, StoreMismatchError
from paper.tables import to_csv


def _linear(**changes):
    few = {"panels": ("linear", "noisy"), "sizes": (15,), "slow_methods": ()}
    return tiny_synthetic(**{**few, **changes})


def test_the_table_does_not_depend_on_the_number_of_processes():
    config = _linear()
    one = synthetic.table(config, n_jobs=1)
    assert to_csv(one) == to_csv(synthetic.table(config, n_jobs=2))
    assert len(one) == 2 * 2 * 5


def test_another_seed_gives_other_numbers():
    assert synthetic.table(_linear(seed=1)) != synthetic.table(_linear())


def test_a_trial_does_not_depend_on_the_number_of_trials():
    few, many = synthetic.table(_linear(n_trials=1)), synthetic.table(_linear(n_trials=2))
    assert few == [row for row in many if row["trial"] == 0]


def test_seeds_of_different_places_differ():
    places = [("synthetic", "linear", 0), ("synthetic", "linear", 1), ("synthetic", "noisy", 0)]
    seeds = {seed_for(s, *place) for s in (0, 1) for place in places}
    assert len(seeds) == 6


@contextmanager
def _interrupted_after_three(title, total):
    left = 3

    def advance(n):
        nonlocal left
        left -= n
        if left < 0:
            raise KeyboardInterrupt

    yield advance


def _counting(experiment, seen):
    def run_unit(config, unit):
        seen.append(unit)
        return experiment.run_unit(config, unit)

    return Experiment(experiment.name, experiment.config, experiment.units, run_unit)


def test_resume_goes_on_from_the_finished_units(tmp_path):
    config, path = _linear(), tmp_path / "units.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(
            synthetic.EXPERIMENT,
            config,
            store=Store(path, config),
            progress=_interrupted_after_three,
        )
    finished = len(path.read_text().splitlines()) - 1
    assert 3 <= finished <= 4
    seen = []
    again = run(
        _counting(synthetic.EXPERIMENT, seen), config, store=Store(path, config, resume=True)
    )
    assert len(seen) == len(synthetic.EXPERIMENT.units(config)) - finished
    assert to_csv(again) == to_csv(synthetic.table(config))


def test_without_resume_the_run_starts_anew(tmp_path):
    config = _linear(n_trials=1)
    store = Store(tmp_path / "units.jsonl", config)
    run(synthetic.EXPERIMENT, config, store=store)
    assert Store(tmp_path / "units.jsonl", config).load() == {}


def test_resume_survives_a_line_that_was_cut_off(tmp_path):
    config, path = _linear(n_trials=1), tmp_path / "units.jsonl"
    table = run(synthetic.EXPERIMENT, config, store=Store(path, config))
    path.write_text(path.read_text()[:-40])
    seen = []
    experiment = _counting(synthetic.EXPERIMENT, seen)
    assert run(experiment, config, store=Store(path, config, resume=True)) == table
    assert len(seen) == 1
    lines = path.read_text().splitlines()
    assert json.loads(lines[-1])["unit"] == list(seen[0])


def test_resume_refuses_units_of_other_settings(tmp_path):
    path = tmp_path / "units.jsonl"
    Store(path, _linear())
    with pytest.raises(StoreMismatchError, match="other settings"):
        Store(path, _linear(seed=1), resume=True)


def test_resume_without_an_earlier_run_starts(tmp_path):
    config = _linear()
    assert Store(tmp_path / "units.jsonl", config, resume=True).load() == {}
