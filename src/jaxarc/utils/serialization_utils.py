"""A door to the documented name: task ids live in `jaxarc.tasks`."""

from jaxarc.tasks.identity import extract_task_id_from_index

__all__ = ["extract_task_id_from_index"]
