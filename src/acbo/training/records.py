"""What a training step and a validation report."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import jax


class _Record(Mapping[str, float]):
    """Fields of a dataclass that can also be looked up by name."""

    def __getitem__(self, key: str) -> float:
        if key not in self._names():
            raise KeyError(f"{key!r} is not one of: {', '.join(self._names())}")
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def _names(self) -> list[str]:
        return [field.name for field in fields(self)]  # pyright: ignore


@dataclass(frozen=True)
class TrainingMetrics(_Record):
    """One step in numbers, of the parameters before it: attributes or `[name]`."""

    total_loss: float
    kl_loss: float
    regularization_loss: float
    mean_expert_accuracy: float
    predicted_entropy: float
    expert_entropy: float
    gradient_norm: float
    learning_rate: float
    step_time: float


STEP_KEYS = (
    *("total_loss", "kl_loss", "regularization_loss", "mean_expert_accuracy"),
    *("gradient_norm", "learning_rate"),
)


def to_floats(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays as Python numbers, in one fetch from the device."""
    fetched = jax.device_get(dict(metrics))
    return {name: float(value) for name, value in fetched.items()}
