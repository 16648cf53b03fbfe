"""The experiments of the paper, one module each: a frozen config in, a tidy table out.

>>> from holrr.experiments import images
>>> rows = images.table(images.Config(images=("cross",), n_trials=1))
>>> sorted(rows[0])
['chosen', 'image', 'method', 'rank', 'rmse', 'task', 'trial']
"""
