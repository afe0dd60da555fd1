"""ARC tasks: files to packed tasks on the device, data sets, subsets, augmentation.

Names are loaded on first use, so that commands import only what they need.
"""

from typing import TYPE_CHECKING

from jaxrig.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from jaxarc.tasks.augment import augment_task, random_augmentation
    from jaxarc.tasks.download import DatasetDownloader, DatasetError
    from jaxarc.tasks.identity import create_jax_task_index, extract_task_id_from_index
    from jaxarc.tasks.parsers import (
        ArcAgiParser,
        ConceptArcParser,
        MiniArcParser,
        create_parser,
        open_dataset,
    )
    from jaxarc.tasks.samples import (
        create_demo_task,
        create_mock_task,
        gather_task,
        stack_task_list,
    )
    from jaxarc.tasks.splits import (
        available_named_subsets,
        load_subset,
        register_subset,
    )
    from jaxarc.tasks.task_json import TaskError

__all__ = [
    "ArcAgiParser",
    "ConceptArcParser",
    "DatasetDownloader",
    "DatasetError",
    "MiniArcParser",
    "TaskError",
    "augment_task",
    "available_named_subsets",
    "create_demo_task",
    "create_jax_task_index",
    "create_mock_task",
    "create_parser",
    "extract_task_id_from_index",
    "gather_task",
    "load_subset",
    "open_dataset",
    "random_augmentation",
    "register_subset",
    "stack_task_list",
]

__getattr__ = lazy_attributes(__name__, __file__)
