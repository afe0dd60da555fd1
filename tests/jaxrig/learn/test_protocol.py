"""Oracle: the shipped tabular problem and policy, and things that are neither."""

from jaxrig.learn.protocol import Environment, Policy
from jaxrig.learn.tabular import corridor, uniform_policy


def test_shipped_problem_and_policy_follow_the_protocols():
    problem = corridor()
    assert isinstance(problem, Environment)
    assert isinstance(uniform_policy(problem), Policy)


def test_other_things_do_not():
    assert not isinstance(corridor(), Policy)
    assert not isinstance(object(), Environment)
