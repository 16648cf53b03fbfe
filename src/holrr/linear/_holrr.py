"""Higher-order low-rank regression: coefficients of low multilinear rank."""

from __future__ import annotations

from ..structures import MultilinearRank
from .base import LinearApproximating

__all__ = ["HOLRR"]


class HOLRR(MultilinearRank, LinearApproximating):
    r"""Higher-order low-rank regression.

    Minimises :math:`\|\mathcal{W} \times_0 X - \mathcal{Y}\|^2 + \alpha \|\mathcal{W}\|^2` over
    the tensors of multilinear rank at most :math:`(R_0, \dots, R_p)`. The problem is not convex;
    the fit is a spectral approximation within a factor of p + 1 of the minimum, and
    ``objective_ / lower_bound_`` certifies how near it really is.

    Parameters
    ----------
    rank : int, float, tuple or None, default=None
        None for full rank; an int for every mode, capped at each mode's size; a float in (0, 1) for
        the smallest ranks that hold that share of each mode's energy; or a tuple ``(R0, ..., Rp)``
        of such entries, input mode first.
    alpha : float, default=1.0
        Ridge penalty, at least 0.
    subspaces : {"fitted", "response"}, default="fitted"
        Where the output subspaces come from: what a linear function of the inputs explains of the
        outputs, or, as in Algorithm 1 of the paper, the outputs themselves. The former ignores
        noise that no input explains, and its bound is sharper.
    refine : bool, default=False
        Whether alternating least squares (higher-order orthogonal iteration) go on from there.
    max_iter : int, default=100
        Largest number of rounds of the refinement.
    tol : float, default=1e-6
        The refinement stops when a round lowers the objective by no more than this share of it.
    fit_intercept : bool, default=True
        Whether an intercept is fitted.
    solver : {"auto", "cholesky", "eigh", "svd"}, default="auto"
        See `RLS`.
    missing : {"raise", "fill"}, default="raise"
        What NaN and masked entries of y are: an error, or missing outputs, which the fit leaves
        out of its error.
        Such a fit is refined, whatever `refine` says, for at most `max_iter` rounds, and has no
        `lower_bound_`. See docs/missing.md.
    output_weight : list of p arrays of shape (d_i,), array of shape (d1, ..., dp), or None
        Weights of the outputs in the error (and the penalty): one vector, or None, for each output
        mode, or an array that is the product of such vectors.
    output_shape : tuple of int, optional
        For flat outputs: ``(d1, ..., dp)`` of a y, and of predictions, with shape (n_samples, D).
    sample_dim : str, optional
        Which dimension of xarray's objects the samples are along; by default the one that X and y
        share, or the first.

    Attributes
    ----------
    core_ : array of shape (R0, ..., Rp)
    factors_ : list of p + 1 arrays of shape (d_i, R_i)
        Input mode first; ``(core_, factors_)`` is a Tucker tensor as TensorLy has them. The
        output factors have orthonormal columns.
    coef_ : array of shape (n_features, d1, ..., dp), or (D, n_features) with `output_shape`
        Dense coefficients, built when asked for.
    intercept_ : array of shape (d1, ..., dp), or float for scalar targets
    noise_ : array of shape (d1, ..., dp), or float for scalar targets
        Standard deviation of the noise of each output: residual squares over the residual
        degrees of freedom, see docs/intervals.md.
    rank_ : tuple of int
        The ranks that were used. An input rank that the data do not support is lowered.
    objective_ : float
        The objective at this fit.
    lower_bound_ : float
        A number that the minimum over all tensors of these ranks is not below.
    spectra_ : list of p + 1 arrays
        Leading squared singular values of each unfolding of Z.
    energy_ : float
        Squared norm of Z: what the model without a constraint on the ranks explains.
    n_iter_ : int
        Number of rounds, of which the spectral one is the first.
    n_dropped_ : int
        With ``missing="fill"``: number of samples without any observed output.
    solver_ : str
        The factorisation that was used.
    moments_ : Moments
        After `partial_fit` and `fit_moments` only.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
    labels_ : Labels or None

    References
    ----------
    G. Rabusseau, H. Kadri (2016). Higher-order low-rank regression. arXiv:1602.06863.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr import HOLRR
    >>> rng = np.random.default_rng(0)
    >>> U0, U1, U2 = rng.normal(size=(8, 2)), rng.normal(size=(5, 2)), rng.normal(size=(6, 2))
    >>> W = np.einsum("abc,ia,jb,kc->ijk", rng.normal(size=(2, 2, 2)), U0, U1, U2)
    >>> X = rng.normal(size=(100, 8))
    >>> Y = np.tensordot(X, W, 1) + 0.1 * rng.normal(size=(100, 5, 6))
    >>> model = HOLRR(rank=(2, 2, 2), alpha=0.1).fit(X, Y)
    >>> model.core_.shape, model.predict(X[:3]).shape
    ((2, 2, 2), (3, 5, 6))
    >>> model.objective_ / model.lower_bound_ < 1.01
    True
    """

    def __init__(
        self,
        rank=None,
        alpha=1.0,
        *,
        subspaces="fitted",
        refine=False,
        max_iter=100,
        tol=1e-6,
        fit_intercept=True,
        solver="auto",
        missing="raise",
        output_weight=None,
        output_shape=None,
        sample_dim=None,
    ):
        self.rank = rank
        self.alpha = alpha
        self.subspaces = subspaces
        self.refine = refine
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.missing = missing
        self.output_weight = output_weight
        self.output_shape = output_shape
        self.sample_dim = sample_dim
