"""Experiments of the paper. Each module computes a tidy table from a frozen config.

This package uses the library and is not part of it. ``make reproduce`` or ``python -m paper all``
in a checkout runs the experiments and writes the report.

>>> from paper import images
>>> rows = images.table(images.Config(images=("cross",), n_trials=1))
>>> sorted(rows[0])
['chosen', 'image', 'method', 'rank', 'rmse', 'task', 'trial']
"""
