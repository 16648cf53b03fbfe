"""Tiny settings of every experiment."""

from paper import images, meteo, runtime, synthetic


def tiny_synthetic(**changes):
    tiny = {
        "sizes": (15, 25),
        "n_trials": 2,
        "n_test": 20,
        "shape": (4, 3, 4),
        "rank": (2, 2, 2),
        "n_inputs": 2,
        "nonlinear_rank": (2, 2, 2),
        "n_noise_directions": 1,
    }
    return synthetic.Config(**{**tiny, **changes})


def tiny_images(**changes):
    return images.Config(**{"images": ("cross",), "n_trials": 2, "n_samples": 60, **changes})


def tiny_runtime(**changes):
    return runtime.Config(
        **{"sizes": ((4, 3, 3), (3, 5, 4)), "n_repeats": 2, "n_repeats_slow": 1, **changes}
    )


def tiny_meteo(folder, **changes):
    tiny = {"horizons": (1, 3), "sizes": (30,), "n_splits": 2, "n_splits_slow": 1}
    return meteo.Config(**{**tiny, "data_home": str(folder), **changes})
