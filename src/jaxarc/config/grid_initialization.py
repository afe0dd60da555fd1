"""Settings of the working grid that an episode starts from."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from jaxarc.config.base import Config, ConfigValidationError
from jaxarc.config.rules import INFINITY, items, number, one_of


@dataclass(frozen=True)
class GridInitializationConfig(Config):
    """How often an episode starts from which kind of grid.

    A demonstration's input as it is, one that is rotated, reflected or recolored, an
    empty grid, or a random one; the weights need not add up to one.
    """

    section: ClassVar[str] = "grid_initialization"

    demo_weight: Annotated[float, number(0)] = 0.4
    permutation_weight: Annotated[float, number(0)] = 0.3
    empty_weight: Annotated[float, number(0)] = 0.2
    random_weight: Annotated[float, number(0)] = 0.1
    permutation_types: Annotated[
        tuple[str, ...], items(one_of("rotate", "reflect", "color_remap"))
    ] = ("rotate", "reflect", "color_remap")
    random_density: Annotated[float, number(0, 1)] = 0.3
    random_pattern_type: Annotated[str, one_of("sparse", "dense")] = "sparse"

    @property
    def probabilities(self) -> tuple[float, float, float, float]:
        """Of demo, permutation, empty and random grids; they add up to one."""
        errors = self.validate()
        if errors:
            raise ConfigValidationError("; ".join(errors))
        demo, permutation, empty, random = self._weights
        total = sum(self._weights)
        return demo / total, permutation / total, empty / total, random / total

    @property
    def _weights(self) -> tuple[float, float, float, float]:
        named = (self.demo_weight, self.permutation_weight)
        return (*named, self.empty_weight, self.random_weight)

    def _relation_errors(self) -> Iterator[str]:
        total = sum(self._weights)
        if not 0 < total < INFINITY:
            yield (
                f"grid_initialization.demo_weight and the other three weights add up "
                f"to {total}; their sum must be finite and above 0"
            )
