import pytest

from acbo.baselines.table import predictors, proposers


def test_every_baseline_is_listed_once_with_what_it_does():
    assert all(hasattr(system, "propose") for system in proposers().values())
    assert all(hasattr(system, "predict") for system in predictors().values())
    assert not proposers().keys() & predictors().keys()


@pytest.mark.parametrize("table", [proposers, predictors])
def test_the_exact_ones_can_be_left_out(table):
    left = table().keys() - table(exact=False).keys()
    assert left
    assert all(name.startswith("exact") for name in left)
