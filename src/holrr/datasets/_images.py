"""Three small images, which are drawn by code, as coefficients of regression problems."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils import check_random_state

from ._synthetic import check_sizes

Array = NDArray[np.float64]


def load_image(name: str) -> Array:
    """Load one of three images that are similar to those of the paper's image experiment.

    Parameters
    ----------
    name : {"cross", "painting", "triangles"}
        ``"cross"`` is a green cross with a white border on black, 50 by 50, of multilinear rank
        (4, 4, 2). ``"painting"`` has three rectangles with soft edges on a warm background, 44 wide
        and 70 high, of multilinear rank (4, 4, 3). ``"triangles"`` is a square made of triangles,
        70 by 70, of full rank.

    Returns
    -------
    image : ndarray of shape (height, width, 3)
        Red, green and blue, each from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.datasets import load_image
    >>> image = load_image("painting")
    >>> image.shape
    (70, 44, 3)
    >>> [int(np.linalg.matrix_rank(np.moveaxis(image, mode, 0).reshape(d, -1)))
    ...  for mode, d in enumerate(image.shape)]
    [4, 4, 3]
    """
    if name not in _PICTURES:
        raise ValueError(f"name must be one of {sorted(_PICTURES)}; got name={name!r}.")
    return _PICTURES[name]()


def make_images() -> dict[str, Array]:
    """Load all images of `load_image`.

    Returns
    -------
    images : dict of str to ndarray of shape (height, width, 3)
        The images by name.

    Examples
    --------
    >>> from holrr.datasets import make_images
    >>> {name: image.shape for name, image in make_images().items()}
    {'cross': (50, 50, 3), 'painting': (70, 44, 3), 'triangles': (70, 70, 3)}
    """
    return {name: draw() for name, draw in _PICTURES.items()}


def make_image_regression(
    image: str | ArrayLike,
    task: str = "channels",
    n_samples: int = 200,
    noise: float = 1.0,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Array, Array, Array]:
    """Generate a regression problem whose coefficients are an image.

    The model is ``Y = W x_0 x + E`` with standard normal inputs. `image_from_coef` converts an
    estimate of ``W`` to an image.

    Parameters
    ----------
    image : str or array-like of shape (height, width, n_channels)
        A name for `load_image`, or any image. Bytes (uint8) are divided by 255; all other values
        are used without scaling.
    task : {"channels", "rows"}, default="channels"
        The mode of the image that is the input mode: the colour channels, which is the paper's
        task (i), or the rows, which is its task (ii).
    n_samples : int, default=200
        Number of samples.
    noise : float, default=1.0
        Standard deviation of the Gaussian noise.
    random_state : int, RandomState instance or None, default=None
        Seed of the random draws.

    Returns
    -------
    X : ndarray of shape (n_samples, n_channels) or (n_samples, height)
        Inputs.
    Y : ndarray of shape (n_samples, height, width) or (n_samples, width, n_channels)
        Outputs.
    coef : ndarray of shape (n_channels, height, width) or (height, width, n_channels)
        The image, with its input mode first.

    Examples
    --------
    >>> from holrr.datasets import make_image_regression
    >>> X, Y, W = make_image_regression("cross", task="rows", random_state=0)
    >>> X.shape, Y.shape, W.shape
    ((200, 50), (200, 50, 3), (50, 50, 3))
    """
    W = np.moveaxis(_check_image(image), _input_axis(task), 0)
    check_sizes(n_samples=n_samples)
    if not noise >= 0:
        raise ValueError(f"noise must be a number that is not negative; got noise={noise!r}.")
    rng = check_random_state(random_state)
    X = rng.standard_normal((n_samples, len(W)))
    Y = np.tensordot(X, W, axes=1)
    Y += noise * rng.standard_normal(Y.shape)
    return X, Y, np.ascontiguousarray(W)


def image_from_coef(coef: ArrayLike, task: str = "channels") -> Array:
    """Convert (estimated) coefficients of an image regression to an image.

    Parameters
    ----------
    coef : array-like of shape (n_channels, height, width) or (height, width, n_channels)
        Coefficients with the input mode first, as from `make_image_regression`.
    task : {"channels", "rows"}, default="channels"
        The task that the coefficients belong to.

    Returns
    -------
    image : ndarray of shape (height, width, n_channels)
        The image, with values clipped to the range from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.datasets import image_from_coef, load_image, make_image_regression
    >>> X, Y, W = make_image_regression("cross", task="channels", random_state=0)
    >>> np.array_equal(image_from_coef(W, task="channels"), load_image("cross"))
    True
    """
    return np.clip(np.moveaxis(np.asarray(coef, dtype=float), 0, _input_axis(task)), 0.0, 1.0)


def _input_axis(task: str) -> int:
    if task not in ("channels", "rows"):
        raise ValueError(f"task must be 'channels' or 'rows'; got task={task!r}.")
    return 2 if task == "channels" else 0


def _check_image(image: str | ArrayLike) -> Array:
    if isinstance(image, str):
        return load_image(image)
    pixels = np.asarray(image)
    if pixels.ndim != 3:
        raise ValueError(
            "image must have the shape (height, width, n_channels); for a grey image use "
            f"image[:, :, None]; got an array of shape {pixels.shape}."
        )
    return pixels / 255.0 if pixels.dtype == np.uint8 else pixels.astype(float)


def _rgb(code: str) -> Array:
    """Return the colour of a hexadecimal code such as "ff8800"."""
    return np.frombuffer(bytes.fromhex(code), dtype=np.uint8) / 255.0


def _cross() -> Array:
    """Draw a green cross with a white border on black.

    The image has four kinds of rows besides black rows, which do not increase the rank.
    """
    image = np.zeros((50, 50, 3))
    for margin, half_width, colour in [(5, 9, "ffffff"), (8, 6, "1f9d55")]:
        reach = np.zeros(50, dtype=bool)
        reach[margin : 50 - margin] = True
        bar = np.zeros(50, dtype=bool)
        bar[25 - half_width : 25 + half_width] = True
        image[np.outer(bar, reach) | np.outer(reach, bar)] = _rgb(colour)
    return image


def _painting() -> Array:
    """Draw a background and three rectangles: four terms of rank one in rows and columns."""
    rows, columns = np.arange(70.0), np.arange(44.0)
    ground = _rgb("8f2a1c")
    shade = np.outer(1 - 0.12 * ((rows - 34.5) / 35) ** 2, 1 - 0.12 * ((columns - 21.5) / 22) ** 2)
    image = shade[:, :, None] * ground
    for top, bottom, inset, colour in [
        (4.5, 27.5, 4.0, "f0a23a"),
        (31.0, 40.5, 6.0, "e9dcc0"),
        (44.0, 65.5, 3.0, "2b2145"),
    ]:
        profile = _soft(rows, top, bottom) * _strokes(rows)
        block = np.outer(profile, _soft(columns, inset, 43 - inset))
        image += block[:, :, None] * (_rgb(colour) - ground)
    return np.clip(image, 0.0, 1.0)


def _soft(position: Array, start: float, stop: float) -> Array:
    """Return one between `start` and `stop` and zero outside, with smooth edges."""
    return expit((position - start) / 0.7) * expit((stop - position) / 0.7)


def _strokes(rows: Array) -> Array:
    """Return faint horizontal brush strokes, a factor of the rows that does not change the rank."""
    return 1.0 - 0.02 * (2.0 + np.sin(2.1 * rows) + np.sin(0.83 * rows + 1.0))


def _triangles() -> Array:
    """Draw triangles at four times the size, and average pixels to smooth slanting edges."""
    size, zoom = 70, 4
    axis = (np.arange(size * zoom) + 0.5) / (size * zoom) - 0.5
    palette = np.stack([_rgb(code) for code in _TRIANGLE_COLOURS])
    fine = palette[_triangle_number(axis[None, :], axis[:, None])]
    return fine.reshape(size, zoom, size, zoom, 3).mean(axis=(1, 3))


def _triangle_number(x: Array, y: Array) -> NDArray[np.int64]:
    """Return the colour number of points of a square centred at 0.

    The square has eight sectors. The edge of a diamond divides each sector in two.
    """
    sector = np.floor(np.arctan2(y, x) / (np.pi / 4)).astype(np.int64)
    inside = np.abs(x) + np.abs(y) < 0.5
    return (sector + 3 * inside) % 8


_TRIANGLE_COLOURS = ["f4d35e", "ee964b", "f95738", "0d3b66", "f4f1de", "3d9a9b", "8ac6b0", "7b2d43"]

_PICTURES: dict[str, Callable[[], Array]] = {
    "cross": _cross,
    "painting": _painting,
    "triangles": _triangles,
}
