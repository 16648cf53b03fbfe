"""Regularised least squares: ridge regression for tensor outputs, no constraint on the rank."""

from __future__ import annotations

from ..structures import Unconstrained
from .base import LinearApproximating

__all__ = ["RLS"]


class RLS(Unconstrained, LinearApproximating):
    r"""Regularised least squares (ridge regression) for tensor outputs.

    Minimises :math:`\|\mathcal{W} \times_0 X - \mathcal{Y}\|^2 + \alpha \|\mathcal{W}\|^2` over
    all tensors. The outputs are independent of each other: it is scikit-learn's ``Ridge`` on the
    flattened outputs.

    Parameters
    ----------
    alpha : float, default=1.0
        Ridge penalty, at least 0. With 0, the solution of least norm.
    fit_intercept : bool, default=True
        Whether an intercept is fitted (by centring the data; it is not penalised).
    solver : {"auto", "cholesky", "eigh", "svd"}, default="auto"
        "cholesky" and "eigh" factorise ``X'X``, "svd" the inputs themselves. "auto" takes the
        second for up to 256 features and the first for more, where the condition number lets half
        of the digits survive it, and else decomposes ``XX'`` or `X`.
    missing : {"raise", "fill"}, default="raise"
        What NaN and masked entries of y are: an error, or missing outputs, which the fit leaves
        out of its error. See docs/missing.md.
    output_weight : list of p arrays of shape (d_i,), array of shape (d1, ..., dp), or None
        As in `HOLRR`; but outputs of ridge regression do not know of each other: only a zero has
        an effect.
    output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    coef_ : array of shape (n_features, d1, ..., dp)
    objective_ : float
        The minimum.
    lower_bound_ : float
        The same, since the problem is solved exactly.
    n_iter_ : int
        With ``missing="fill"``: number of rounds around missing outputs.
    intercept_, noise_, n_dropped_, solver_, moments_, n_features_in_, feature_names_in_, labels_
        As in `HOLRR`.

    See Also
    --------
    LRR : The coefficients as a matrix of low rank.
    HOLRR : The coefficients as a tensor of low multilinear rank.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr import RLS
    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.normal(size=(50, 3)), rng.normal(size=(3, 4, 5))
    >>> model = RLS(alpha=0).fit(X, np.tensordot(X, W, 1) + 1)
    >>> model.coef_.shape, bool(np.allclose(model.coef_, W)), bool(np.allclose(model.intercept_, 1))
    ((3, 4, 5), True, True)
    """

    def __init__(
        self,
        alpha=1.0,
        *,
        fit_intercept=True,
        solver="auto",
        missing="raise",
        output_weight=None,
        output_shape=None,
        sample_dim=None,
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.missing = missing
        self.output_weight = output_weight
        self.output_shape = output_shape
        self.sample_dim = sample_dim
