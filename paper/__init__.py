"""The experiments of the paper, one module each: a frozen config in, a tidy table out.

A user of the library beside it, not a part of it: ``make reproduce`` or ``python -m paper all``
in a checkout runs them and writes the report.

>>> from paper import images
>>> rows = images.table(images.Config(images=("cross",), n_trials=1))
>>> sorted(rows[0])
['chosen', 'image', 'method', 'rank', 'rmse', 'task', 'trial']
"""
