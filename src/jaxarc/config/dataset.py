"""Settings of a dataset: where it lies and the sizes its tasks are padded to."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from jaxarc.config.base import Config
from jaxarc.config.rules import one_of, text, whole

SPLITS = ("train", "training", "eval", "evaluation", "test", "all", "corpus")


@dataclass(frozen=True)
class DatasetConfig(Config):
    """Which tasks are read, and the sizes they are padded to.

    `dataset_repo` is the git repository that `make(..., auto_download=True)` clones,
    as owner/name or as an address, where it is not the usual one.
    """

    section: ClassVar[str] = "dataset"
    without_effect: ClassVar[frozenset[str]] = frozenset(
        {"parser_entry_point", "expected_subdirs"}
    )

    dataset_name: Annotated[str, text(empty=False)] = "arc-agi-1"
    dataset_path: str = ""
    dataset_repo: str = ""
    max_grid_height: Annotated[int, whole(1, unusual_above=200)] = 30
    max_grid_width: Annotated[int, whole(1, unusual_above=200)] = 30
    min_grid_height: Annotated[int, whole(1)] = 1
    min_grid_width: Annotated[int, whole(1)] = 1
    max_colors: Annotated[int, whole(2, unusual_above=50)] = 10
    background_color: Annotated[int, whole(-1)] = -1
    max_train_pairs: Annotated[int, whole(1, unusual_above=20)] = 10
    max_test_pairs: Annotated[int, whole(1, unusual_above=5)] = 3
    task_split: Annotated[str, one_of(*SPLITS)] = "train"
    shuffle_tasks: bool = True

    def _relation_errors(self) -> Iterator[str]:
        for side in ("height", "width"):
            most = getattr(self, f"max_grid_{side}")
            least = getattr(self, f"min_grid_{side}")
            if most < least:
                yield (
                    f"dataset.max_grid_{side} is {most}; it must be at least "
                    f"dataset.min_grid_{side}, which is {least}"
                )
        if self.background_color >= self.max_colors:
            yield (
                f"dataset.background_color is {self.background_color}; it must be "
                f"below dataset.max_colors, which is {self.max_colors}"
            )


UnifiedDatasetConfig = DatasetConfig
