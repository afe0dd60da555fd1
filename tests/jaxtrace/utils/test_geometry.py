"""Oracle: SciPy's rotations and plain comparisons."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxtrace.utils.geometry import (
    AABB,
    rotate2d,
    rotate3d_euler,
    scale,
    transform_points,
    translate,
)

POINTS = np.random.default_rng(0).normal(size=(20, 3))


def test_box():
    box = AABB([0, 0, 0], [1, 2, 3])
    assert box.dim == 3
    np.testing.assert_array_equal(box.size(), [1, 2, 3])
    inside = box.contains([[0, 0, 0], [1, 2, 3], [1.1, 0, 0], [0, -1e-9, 0]])
    np.testing.assert_array_equal(inside, [True, True, False, False])
    assert box.contains([0.5, 0.5, 0.5])
    np.testing.assert_array_equal(box.clamp_points([[2, -1, 1]]), [[1, 0, 1]])
    grown = box.expand([1, 0, 2])
    np.testing.assert_array_equal([grown.lo, grown.hi], [[-1, 0, -2], [2, 2, 5]])
    assert box.intersects(AABB([1, 2, 3], [4, 4, 4]))
    assert not box.intersects(AABB([1.5, 0, 0], [4, 4, 4]))


def test_wrong_boxes():
    with pytest.raises(ValueError, match="must not exceed"):
        AABB([0, 2], [1, 1])
    with pytest.raises(ValueError, match="make no box"):
        AABB([0, 2], [1, 1, 1])


@pytest.mark.parametrize("order", ["xyz", "zyx", "yxz", "XZX"])
def test_euler_rotation(order):
    angles = (0.3, -1.2, 2.0)
    expected = Rotation.from_euler(order.lower(), angles).apply(POINTS)
    np.testing.assert_allclose(rotate3d_euler(POINTS, angles, order), expected)


def test_rotation_in_the_plane():
    turned = rotate2d([[1.0, 0.0], [0.0, 2.0]], np.pi / 2)
    np.testing.assert_allclose(turned, [[0, 1], [-2, 0]], atol=1e-15)
    with pytest.raises(ValueError, match="order='xw'"):
        rotate3d_euler(POINTS, (1.0, 2.0), "xw")


def test_transforms_compose():
    matrix = Rotation.from_euler("x", 0.4).as_matrix()
    together = transform_points(POINTS, s=2.0, R=matrix, t=[1, 2, 3])
    apart = translate(rotate3d_euler(scale(POINTS, 2.0), (0.4,), "x"), [1, 2, 3])
    np.testing.assert_allclose(together, apart)
    np.testing.assert_array_equal(transform_points(POINTS), POINTS)


def test_dtype_is_kept():
    points = POINTS.astype(np.float32)
    moved = transform_points(points, s=2, R=np.eye(3), t=[0.5, 0, 0])
    assert moved.dtype == rotate2d(points[:, :2], 1.0).dtype == np.float32
    assert translate([[1, 2]], [0.5, 0]).tolist() == [[1.5, 2.0]]
