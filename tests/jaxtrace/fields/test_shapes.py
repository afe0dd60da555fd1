"""Rules for places outside a mesh of one cell."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.locate import locate, make_locator
from jaxtrace.fields.mesh import OUTSIDE, check_outside, interpolate
from jaxtrace.fields.topology import make_mesh

CORNERS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
PLACES = np.array([[0.25, 0.25, 0.25], [-1.0, 0.25, 0.25], [1.0, 1.0, 1.0]])
CLOSEST = np.array([[0.25, 0.25, 0.25], [0.0, 0.25, 0.25], [1 / 3, 1 / 3, 1 / 3]])


def answer(outside):
    mesh = make_mesh(CORNERS, np.array([[0, 1, 2, 3]]))
    locator = make_locator(mesh, CORNERS, np.dtype("f4"))
    x = jnp.asarray(PLACES, np.float32)
    place = locate(locator, x, jnp.full(3, -1, np.int32))
    # The shares of all corners but the first are the coordinates of this tetrahedron.
    return np.asarray(
        interpolate(locator, outside, x, place, lambda _, later: jnp.stack(later, 1))
    )


@pytest.mark.parametrize(
    ("outside", "expected"),
    [
        ("nearest_element", CLOSEST),
        ("extrapolate", PLACES),
        ("zero", PLACES * [[1], [0], [0]]),
        ("nan", np.where([[True], [False], [False]], PLACES, np.nan)),
    ],
)
def test_places_outside_follow_the_rule(outside, expected):
    np.testing.assert_allclose(answer(outside), expected, atol=1e-6)


def test_only_known_rules_are_taken():
    for outside in OUTSIDE:
        check_outside(outside)
    with pytest.raises(ValueError, match="choose one of nearest_element"):
        check_outside("elsewhere")
