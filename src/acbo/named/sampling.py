"""Drawing named samples from models: one compiled call for a request."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from acbo.named.digraph import check_known
from acbo.named.handlers import (
    BUILT_IN,
    apply_intervention,
    get_intervention_handler,
)
from acbo.named.interventions import (
    PERFECT,
    InterventionSpec,
    as_array,
    as_arrays,
    create_perfect_intervention,
)
from acbo.named.mechanisms import plain_number
from acbo.named.model import NamedSCM
from acbo.named.samples import Sample, create_sample
from acbo.scm import sample_each, sample_rows
from jaxrig.tracing import compile_once

_rows = compile_once(sample_rows, max_traces=None)
_each = compile_once(sample_each, max_traces=None)


def sample_from_scm(scm: NamedSCM, n_samples: int, seed: int = 0) -> list[Sample]:
    """Observational samples; sample i depends on the seed and i only."""
    return _draw(scm, None, n_samples, seed)


def sample_with_intervention(
    scm: NamedSCM, spec: InterventionSpec, n_samples: int, seed: int = 0
) -> list[Sample]:
    """Samples under an intervention, with the noise of `sample_from_scm`'s seed.

    So whatever the intervention does not reach has the very values it has there.
    """
    return _draw(scm, spec, n_samples, seed)


def generate_mixed_dataset(
    scm: NamedSCM,
    n_observational: int,
    interventions: Sequence[InterventionSpec],
    samples_per_intervention: int,
    seed: int = 0,
) -> list[Sample]:
    """Observational samples, then some for each intervention, all of other noise."""
    _check_count(n_observational, "n_observational")
    _check_count(samples_per_intervention, "samples_per_intervention")
    repeated = [s for s in interventions for _ in range(samples_per_intervention)]
    specs: list[InterventionSpec | None] = [None] * n_observational
    specs += repeated
    if not specs:
        return []
    if all(spec is None or _is_built_in(spec) for spec in specs):
        rows = np.asarray(_each(jax.random.key(seed), scm, as_arrays(scm, specs)))
        return _to_samples(scm, rows, specs)
    seeds = np.random.SeedSequence(seed).generate_state(len(interventions) + 1)
    samples = _draw(scm, None, n_observational, int(seeds[0]))
    for spec, own in zip(interventions, seeds[1:], strict=True):
        samples += _draw(scm, spec, samples_per_intervention, int(own))
    return samples


def create_intervention_grid(
    scm: NamedSCM,
    points: int = 5,
    variables: Iterable[str] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> list[InterventionSpec]:
    """Each settable variable in turn at evenly spaced values, both ends included."""
    if points < 2:
        raise ValueError(f"points={points}: both ends of a range need at least 2")
    return [
        create_perfect_intervention({name}, {name: value})
        for name, (low, high) in _limits(scm, variables, ranges).items()
        for value in np.linspace(low, high, points).tolist()
    ]


def generate_random_interventions(
    scm: NamedSCM,
    count: int,
    seed: int = 0,
    variables: Iterable[str] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> list[InterventionSpec]:
    """Interventions on one settable variable each, variable and value uniform."""
    _check_count(count, "count")
    limits = _limits(scm, variables, ranges)
    random = np.random.default_rng(seed)
    chosen = random.integers(len(limits), size=count)
    shares = random.uniform(size=count)
    specs = []
    for place, share in zip(chosen, shares, strict=True):
        name = list(limits)[place]
        low, high = limits[name]
        value = float(low + share * (high - low))
        specs.append(create_perfect_intervention({name}, {name: value}))
    return specs


def _is_built_in(spec: InterventionSpec) -> bool:
    return get_intervention_handler(spec.type) is BUILT_IN.get(spec.type)


def _check_count(count: int, what: str) -> None:
    if count < 0:
        raise ValueError(f"{what}={count}: give 0 or more")


def _draw(
    scm: NamedSCM, spec: InterventionSpec | None, count: int, seed: int
) -> list[Sample]:
    _check_count(count, "n_samples")
    if count == 0:
        return []
    model, arrays = scm, as_array(scm, None)
    if spec is not None and _is_built_in(spec):
        arrays = as_array(scm, spec)
    elif spec is not None:
        model = apply_intervention(scm, spec)
    rows = np.asarray(_rows(jax.random.key(seed), model, count, arrays))
    return _to_samples(scm, rows, [spec] * count)


def _to_samples(
    scm: NamedSCM, rows: np.ndarray, specs: Sequence[InterventionSpec | None]
) -> list[Sample]:
    samples = []
    for row, spec in zip(rows, specs, strict=True):
        values = dict(zip(scm.names, map(plain_number, row), strict=True))
        if spec is None:
            samples.append(create_sample(values))
            continue
        if spec.type == PERFECT:  # the value asked for, not its single precision
            values |= spec.values
        samples.append(create_sample(values, spec.type, spec.targets))
    return samples


def _limits(
    scm: NamedSCM,
    variables: Iterable[str] | None,
    ranges: Mapping[str, tuple[Any, Any]] | None,
) -> dict[str, tuple[float, float]]:
    known = scm.ranges | dict(ranges or {})
    chosen = scm.manipulable if variables is None else tuple(variables)
    if not chosen:
        raise ValueError("the model has no variable that may be set")
    for name in chosen:
        check_known(name, scm.manipulable, "settable variable")
        if not np.isfinite(known[name]).all():
            raise ValueError(f"variable {name!r} has no range: pass ranges={{...}}")
    return {name: known[name] for name in chosen}
