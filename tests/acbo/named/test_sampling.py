import pytest

from acbo.named import sampling
from acbo.named.interventions import create_perfect_intervention as perfect
from acbo.named.interventions import create_shift_intervention
from acbo.named.samples import is_observational
from acbo.named.sampling import (
    create_intervention_grid,
    generate_mixed_dataset,
    generate_random_interventions,
    sample_from_scm,
    sample_with_intervention,
)
from causal_models import triangle


def test_interventions_keep_the_noise_and_the_exact_value():
    scm = triangle()
    seen = sample_from_scm(scm, 6, seed=2)
    done = sample_with_intervention(scm, perfect({"B"}, {"B": 0.1}), 6, seed=2)
    assert [s.values["A"] for s in done] == [s.values["A"] for s in seen]
    assert {s.values["B"] for s in done} == {0.1}
    assert all(s.intervention_targets == {"B"} for s in done)
    assert all(a.values["C"] != b.values["C"] for a, b in zip(seen, done, strict=True))
    assert seen == sample_from_scm(scm, 6, seed=2)
    assert seen != sample_from_scm(scm, 6, seed=3)
    assert sample_from_scm(scm, 0) == []


def test_one_compiled_program_serves_every_target_and_value():
    scm = triangle()
    sample_from_scm(scm, 6, seed=0)
    before = sampling._rows.trace_count
    for name, value in (("A", 1.0), ("B", -2.0)):
        sample_with_intervention(scm, perfect({name}, {name: value}), 6, seed=1)
    sample_with_intervention(scm, create_shift_intervention({"A"}, {"A": 1.0}), 6)
    assert sampling._rows.trace_count == before


def test_a_mixed_data_set_is_one_request():
    scm = triangle()
    specs = [perfect({"A"}, {"A": 1.0}), perfect({"A", "B"}, {"A": 0.0, "B": 2.0})]
    data = generate_mixed_dataset(scm, 4, specs, 3, seed=5)
    assert [is_observational(s) for s in data] == [True] * 4 + [False] * 6
    assert all(s.values["A"] == 1.0 for s in data[4:7])
    assert all(s.intervention_targets == {"A", "B"} for s in data[7:])
    assert len({s.values["C"] for s in data}) == 10
    assert generate_mixed_dataset(scm, 0, [], 3) == []


def test_a_grid_has_both_ends_and_random_ones_stay_within():
    scm = triangle(ranges={"A": (-1.0, 1.0), "B": (0.0, 4.0)})
    grid = create_intervention_grid(scm, 3)
    assert [dict(s.values) for s in grid] == [
        *({"A": value} for value in (-1.0, 0.0, 1.0)),
        *({"B": value} for value in (0.0, 2.0, 4.0)),
    ]
    drawn = generate_random_interventions(scm, 200, seed=1)
    assert drawn == generate_random_interventions(scm, 200, seed=1)
    assert {name for s in drawn for name in s.targets} == {"A", "B"}
    values = [s.values["B"] for s in drawn if "B" in s.values]
    assert min(values) >= 0
    assert max(values) <= 4
    assert max(values) > 3.5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: sample_from_scm(s, -1), "n_samples=-1"),
        (lambda s: generate_mixed_dataset(s, -1, [], 1), "n_observational=-1"),
        (lambda s: create_intervention_grid(s, 1), "points=1"),
        (lambda s: create_intervention_grid(s, 3, ["C"]), "'C' is not one of: A, B"),
        (
            lambda s: create_intervention_grid(triangle(ranges=None)),
            "'A' has no range: pass ranges",
        ),
        (
            lambda s: sample_with_intervention(s, perfect({"A"}, {"A": 9.0}), 2),
            "outside its range",
        ),
        (
            lambda s: sample_with_intervention(s, perfect({"C"}, {"C": 1.0}), 2),
            "is the target",
        ),
    ],
)
def test_wrong_requests_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call(triangle())
