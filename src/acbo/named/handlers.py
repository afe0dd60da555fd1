"""What each type of intervention makes of a model, by name of the type."""

import dataclasses
from collections.abc import Callable
from typing import Any, cast

import jax.numpy as jnp

from acbo.named.digraph import check_known
from acbo.named.interventions import (
    PERFECT,
    SHIFT,
    InterventionSpec,
    check_settable,
    check_values,
)
from acbo.named.mechanisms import ConstantMechanism, ShiftedMechanism
from acbo.named.model import NamedSCM
from jaxrig.static import freeze

Handler = Callable[[NamedSCM, InterventionSpec], NamedSCM]


def apply_perfect(scm: NamedSCM, spec: InterventionSpec) -> NamedSCM:
    """A model whose targets are constants; the edges stay as they are."""
    values = check_values(scm, spec.values)
    changed = {n: ConstantMechanism(jnp.asarray(v)) for n, v in values.items()}
    return _replace(scm, spec, changed)


def apply_shift(scm: NamedSCM, spec: InterventionSpec) -> NamedSCM:
    """A model whose targets are moved by their values and keep their causes."""
    for name in spec.targets:
        check_settable(scm, name)
    changed = {
        name: ShiftedMechanism(scm.mechanisms[name], jnp.asarray(value))
        for name, value in spec.values.items()
    }
    return _replace(scm, spec, changed)


def _replace(
    scm: NamedSCM, spec: InterventionSpec, changed: dict[str, Any]
) -> NamedSCM:
    notes = scm.metadata | {
        "intervention_applied": True,
        "intervention_type": spec.type,
        "intervention_targets": spec.targets,
        "intervention_values": dict(spec.values),
    }
    mechanisms = scm.mechanisms | changed
    return dataclasses.replace(scm, mechanisms=mechanisms, notes=freeze(notes))


BUILT_IN: dict[str, Handler] = {PERFECT: apply_perfect, SHIFT: apply_shift}
_handlers: dict[str, Handler] = dict(BUILT_IN)


def register_intervention_handler(type: str, handler: Any) -> None:
    """Use `handler(scm, spec) -> scm` for interventions of this type from now on."""
    if not type:
        raise ValueError(f"type={type!r} is no name: give a non-empty string")
    if not callable(handler):
        raise ValueError(f"handler={handler!r} is not callable")
    _handlers[type] = cast(Handler, handler)


def get_intervention_handler(type: str) -> Handler:
    """The handler of a type; ValueError listing the types where there is none."""
    check_known(type, _handlers, "intervention type")
    return _handlers[type]


def apply_intervention(scm: NamedSCM, spec: InterventionSpec) -> NamedSCM:
    """The model after an intervention; the model given stays as it is."""
    return get_intervention_handler(spec.type)(scm, spec)


def list_intervention_types() -> list[str]:
    """The types that have a handler, sorted."""
    return sorted(_handlers)


def unregister_intervention_handler(type: str) -> None:
    """Forget the handler of a type; ValueError where there is none."""
    check_known(type, _handlers, "intervention type")
    del _handlers[type]


def clear_intervention_handlers() -> None:
    """Forget every handler that was registered and restore the built-in ones."""
    _handlers.clear()
    _handlers.update(BUILT_IN)
