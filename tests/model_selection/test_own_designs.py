"""Own inputs are compared beside blocks that are left out of the shared part."""

import numpy as np
import pytest

from holrr import RLSCV


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore:The best penalty")
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_own_inputs_beside_a_block_that_is_left_out(fit_intercept):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 2, 5)) + 3 * fit_intercept
    shared = X[:, 1] @ rng.normal(size=(5, 1)) @ rng.normal(size=(1, 5)) / 2
    y = X[:, 1] * [3, -2, 1, 2, -3] + shared + rng.normal(size=(120, 5))
    how = {"input_rank": None, "fit_intercept": fit_intercept}
    lags = np.repeat(["old", "new"], 5)
    model = RLSCV(blocks=lags, own=[(1, 0)], **how).fit(X, y)
    assert model.block_alphas_["old"] == np.inf
    assert np.isfinite(model.block_alphas_["new"])
    assert model.best_estimator_.own == [(1, 0)]
    # An input of a block that is left out has an effect on the output that owns it alone.
    of_others = ~np.eye(5, dtype=bool)
    assert np.abs(model.coef_[0][of_others]).max() < 1e-12
    assert np.abs(model.coef_[1][of_others]).max() > 0.1
