"""The documented doorway to parsers: data sets by id, index or chance, and buffers."""

from jaxarc.data.buffer import buffer_size, gather_task, stack_task_list
from jaxarc.data.corpora import ConceptArcParser, MiniArcParser, create_parser
from jaxarc.data.download import DatasetDownloader, DatasetError
from jaxarc.data.parse import TaskError
from jaxarc.data.parsers import ArcAgiParser, TaskParser
from jaxarc.data.sources import dataset_kind

__all__ = [
    "ArcAgiParser",
    "ConceptArcParser",
    "DatasetDownloader",
    "DatasetError",
    "MiniArcParser",
    "TaskError",
    "TaskParser",
    "buffer_size",
    "create_parser",
    "dataset_kind",
    "gather_task",
    "stack_task_list",
]
