"""
First fit: ridge, low-rank and higher-order low-rank regression
===============================================================

This example fits three linear models to the same data and compares their errors on new samples.
The output of a sample is a table of 20 by 15 numbers that depends on few directions of each axis.
"""

# %%
# The data have 100 samples, and the noise is as strong as the signal. Half of the samples are
# kept for the test.

from holrr.datasets import make_tensor_regression

X, Y = make_tensor_regression(100, 10, (20, 15), rank=(3, 2, 2), snr=1, random_state=0)
X.shape, Y.shape

# %%
# Ridge regression (``RLSCV``) fits the 300 outputs separately. Low-rank regression (``LRRCV``)
# lets them share directions of the inputs. Higher-order low-rank regression (``HOLRRCV``) also
# uses few directions along both modes (axes) of the table. All of them choose penalty and ranks by
# five-fold cross-validation.

from holrr import HOLRRCV, LRRCV, RLSCV

models = {m.__name__.removesuffix("CV"): m().fit(X[:50], Y[:50]) for m in (RLSCV, LRRCV, HOLRRCV)}
{name: round(model.score(X[50:], Y[50:]), 3) for name, model in models.items()}

# %%
# The best single ranks are the ranks of the true coefficients.

models["HOLRR"].best_params_["rank"]

# %%
# The maps show the coefficients of the third input for every output. Ridge regression has the
# most noise, ``HOLRRCV`` the least.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 3, figsize=(8, 3), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    image = ax.imshow(model.coef_[2], cmap="RdBu_r", vmin=-15, vmax=15)
    ax.set(title=name, xlabel="second output mode")
axes[0].set_ylabel("first output mode")
figure.colorbar(image, ax=axes, label="coefficient")
plt.show()
