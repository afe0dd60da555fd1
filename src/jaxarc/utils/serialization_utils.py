"""A door to documented names: states on disk, and task ids of `jaxarc.tasks`."""

from jaxarc.state import ArcEnvState
from jaxarc.tasks.identity import extract_task_id_from_index

__all__ = ["extract_task_id_from_index", "load_state", "save_state"]

save_state = ArcEnvState.save
load_state = ArcEnvState.load
