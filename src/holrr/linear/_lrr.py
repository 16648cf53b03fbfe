"""Low-rank regression: the coefficients as a matrix, inputs by all outputs, of low rank."""

from __future__ import annotations

from ..structures import LowRank
from .base import LinearApproximating

__all__ = ["LRR"]


class LRR(LowRank, LinearApproximating):
    r"""Low-rank (reduced-rank) ridge regression for tensor outputs.

    Minimises :math:`\|\mathcal{W} \times_0 X - \mathcal{Y}\|^2 + \alpha \|\mathcal{W}\|^2` over
    the tensors whose mode-0 unfolding (inputs by all outputs) has rank at most `rank`. The
    minimum is exact.

    Parameters
    ----------
    rank : int, float or None, default=None
        Largest rank, capped at the number of features; a float in (0, 1) is the share of the
        energy of Z to keep; None for full rank.
    alpha : float, default=1.0
        Ridge penalty, at least 0.
    missing : {"raise", "fill"}, default="raise"
        What NaN and masked entries of y are: an error, or missing outputs, which the fit leaves
        out of its error, filling and refitting in turn. See docs/missing.md.
    solver : {"auto", "cholesky", "eigh", "svd"}, default="auto"
        See `RLS`.
    fit_intercept, output_weight, output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    core_ : array of shape (R, d1, ..., dp)
        Outputs for each of the R latent inputs.
    factors_ : list of p + 1 arrays
        First the map from inputs to latent inputs, (n_features, R), then identities.
    coef_ : array of shape (n_features, d1, ..., dp)
        Dense coefficients, built when asked for.
    rank_ : int
        The rank that was used: lower than asked for where the data do not support it.
    objective_ : float
        The minimum.
    lower_bound_ : float
        The same, since the problem is solved exactly.
    spectra_ : list of p + 1 arrays
        Squared singular values of Z; of the input mode only.
    n_iter_ : int
        With ``missing="fill"``: number of rounds around missing outputs.
    intercept_, noise_, n_dropped_, solver_, moments_, n_features_in_, feature_names_in_, labels_
        As in `HOLRR`.

    References
    ----------
    A. J. Izenman (1975). Reduced-rank regression for the multivariate linear model. Journal of
    Multivariate Analysis 5(2), 248-264.

    A. Mukherjee, J. Zhu (2011). Reduced rank ridge regression and its kernel extensions.
    Statistical Analysis and Data Mining 4(6), 612-622.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr import LRR
    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.normal(size=(50, 6)), rng.normal(size=(6, 2)) @ rng.normal(size=(2, 20))
    >>> model = LRR(rank=2, alpha=0).fit(X, (X @ W).reshape(50, 4, 5))
    >>> model.rank_, bool(np.allclose(model.coef_.reshape(6, 20), W))
    (2, True)
    """

    def __init__(
        self,
        rank=None,
        alpha=1.0,
        *,
        fit_intercept=True,
        solver="auto",
        missing="raise",
        output_weight=None,
        output_shape=None,
        sample_dim=None,
    ):
        self.rank = rank
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.missing = missing
        self.output_weight = output_weight
        self.output_shape = output_shape
        self.sample_dim = sample_dim
