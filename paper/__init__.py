"""Experiments of the paper: Figure 1, Figure 2, Table 1, Table 2, and published forecasts.

This package uses the library and is not part of it. ``make reproduce``, or ``python -m paper`` in a
checkout, runs the four experiments of the paper.

>>> from paper import images
>>> from paper.experiment import run
>>> rows = run(images, images.Config(images=("cross",), n_trials=1))
>>> sorted(rows[0])
['chosen', 'image', 'method', 'rank', 'rmse', 'task', 'trial']
"""
