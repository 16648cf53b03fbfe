import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from holrr.datasets import image_from_coef, load_image, make_image_regression, make_images

NAMES = ["cross", "painting", "triangles"]


def multilinear_rank(W):
    return tuple(
        int(np.linalg.matrix_rank(np.moveaxis(W, mode, 0).reshape(d, -1)))
        for mode, d in enumerate(W.shape)
    )


@pytest.mark.parametrize(
    ("name", "shape", "rank"),
    [
        ("cross", (50, 50, 3), (4, 4, 2)),
        ("painting", (70, 44, 3), (4, 4, 3)),
        ("triangles", (70, 70, 3), (70, 70, 3)),
    ],
)
def test_sizes_and_ranks(name, shape, rank):
    image = load_image(name)
    assert image.shape == shape
    assert image.dtype == np.float64
    assert image.min() >= 0.0
    assert image.max() <= 1.0
    assert multilinear_rank(image) == rank


def test_cross_is_green_with_a_white_border_and_symmetric():
    image = load_image("cross")
    assert image[25, 25].argmax() == 1
    assert_array_equal(image[25, 6], [1, 1, 1])
    assert_array_equal(image[0, 0], [0, 0, 0])
    assert_array_equal(image, image[::-1])
    assert_array_equal(image, image.swapaxes(0, 1))


def test_no_pixel_of_the_painting_is_clipped():
    # Clipping would break the exact rank, and flatten the colours.
    image = load_image("painting")
    assert image.min() > 0.0
    assert image.max() < 1.0


def test_the_picture_of_triangles_is_far_from_low_rank():
    s = np.linalg.svd(load_image("triangles").reshape(70, -1), compute_uv=False)
    assert np.sum(s[4:] ** 2) > 0.03 * np.sum(s[1:] ** 2)


def test_make_images_draws_every_picture_anew():
    images = make_images()
    assert list(images) == NAMES
    images["cross"][:] = 0
    assert load_image("cross").max() == 1.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("task", ["channels", "rows"])
def test_regression_recovers_the_picture_without_noise(name, task):
    X, Y, W = make_image_regression(name, task, noise=0, random_state=0)
    image = load_image(name)
    d0 = 3 if task == "channels" else len(image)
    assert X.shape == (200, d0)
    assert Y.shape == (200, *W.shape[1:])
    fitted = np.linalg.lstsq(X, Y.reshape(200, -1), rcond=None)[0].reshape(W.shape)
    assert_allclose(image_from_coef(fitted, task), image, atol=1e-10)


def test_shapes_of_the_two_tasks_of_the_paper():
    assert make_image_regression("painting", "channels")[2].shape == (3, 70, 44)
    assert make_image_regression("painting", "rows")[2].shape == (70, 44, 3)


def test_noise_is_a_standard_deviation():
    X, Y, W = make_image_regression("cross", "rows", noise=0.5, random_state=0)
    assert_allclose((Y - np.tensordot(X, W, axes=1)).std(), 0.5, rtol=0.02)


def test_any_image_is_accepted_and_bytes_are_scaled():
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (6, 5, 4), dtype=np.uint8)
    W = make_image_regression(picture, "rows")[2]
    assert_array_equal(W, picture / 255.0)
    floats = rng.standard_normal((6, 5, 1))
    assert_array_equal(make_image_regression(floats, "channels")[2], np.moveaxis(floats, 2, 0))


def test_the_given_picture_is_left_alone():
    picture = load_image("cross")
    W = make_image_regression(picture, "rows", random_state=0)[2]
    W[:] = -1
    assert picture.min() == 0.0


def test_same_seed_same_data():
    for a, b in zip(*(make_image_regression("cross", random_state=1) for _ in "ab"), strict=True):
        assert_array_equal(a, b)


def test_estimates_are_clipped_to_the_range_of_a_picture():
    image = image_from_coef(np.array([-1.0, 0.5, 2.0]).reshape(3, 1, 1), "channels")
    assert_array_equal(image, [[[0.0, 0.5, 1.0]]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load_image("rothko"), r"name must be one of \['cross'.*'rothko'"),
        (lambda: make_image_regression("cross", "columns"), r"task must be .*'columns'"),
        (lambda: image_from_coef(np.ones((3, 2, 2)), "x"), r"task must be .*'x'"),
        (lambda: make_image_regression(np.ones((4, 4))), r"image\[:, :, None\].*\(4, 4\)"),
        (lambda: make_image_regression("cross", noise=-1), r"noise must be .*noise=-1"),
        (lambda: make_image_regression("cross", n_samples=0), r"n_samples must be .*=0"),
    ],
)
def test_errors_name_the_argument_and_its_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()
