"""Problems that the tests of model selection share."""

import numpy as np
import pytest


@pytest.fixture
def make_data():
    """Data of low rank with noise and means far from zero."""

    def make(n=30, d0=3, shape=(3, 2), noise=1.0, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, d0)) * rng.uniform(0.3, 2, size=d0) + 2
        coef = np.multiply.outer(rng.normal(size=d0), rng.normal(size=shape))
        coef += 0.3 * rng.normal(size=coef.shape)
        return X, np.tensordot(X, coef, 1) + noise * rng.normal(size=(n, *shape)) - 3

    return make
