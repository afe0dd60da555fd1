"""ARC data: files to packed tasks on the device, task ids, augmentation, downloads."""

from jaxarc.data.augment import augment_planes, augment_task, random_augmentation
from jaxarc.data.buffer import buffer_size, gather_task, stack_task_list
from jaxarc.data.corpora import ConceptArcParser, MiniArcParser, create_parser
from jaxarc.data.download import DatasetDownloader, DatasetError
from jaxarc.data.embedded import combined_ids
from jaxarc.data.identity import (
    TaskIDManager,
    create_jax_task_index,
    extract_task_id_from_index,
    get_global_task_manager,
    get_task_id_globally,
    is_dummy_task_index,
    register_task_globally,
)
from jaxarc.data.parse import RawTask, TaskError, parse_task, parse_text
from jaxarc.data.parsers import ArcAgiParser, TaskParser
from jaxarc.data.samples import create_demo_task, create_mock_task
from jaxarc.data.sources import dataset_kind
from jaxarc.data.splits import (
    Selection,
    available_named_subsets,
    available_task_ids,
    get_subset_task_ids,
    load_all_subsets_for_dataset,
    load_subset,
    register_subset,
    resolve_selector,
    subset_task_ids,
)

__all__ = [
    "ArcAgiParser",
    "ConceptArcParser",
    "DatasetDownloader",
    "DatasetError",
    "MiniArcParser",
    "RawTask",
    "Selection",
    "TaskError",
    "TaskIDManager",
    "TaskParser",
    "augment_planes",
    "augment_task",
    "available_named_subsets",
    "available_task_ids",
    "buffer_size",
    "combined_ids",
    "create_demo_task",
    "create_jax_task_index",
    "create_mock_task",
    "create_parser",
    "dataset_kind",
    "extract_task_id_from_index",
    "gather_task",
    "get_global_task_manager",
    "get_subset_task_ids",
    "get_task_id_globally",
    "is_dummy_task_index",
    "load_all_subsets_for_dataset",
    "load_subset",
    "parse_task",
    "parse_text",
    "random_augmentation",
    "register_subset",
    "register_task_globally",
    "resolve_selector",
    "stack_task_list",
    "subset_task_ids",
]
