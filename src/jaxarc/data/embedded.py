"""The embedded ARC-AGI data sets, one by one or both without what they share."""

from jaxarc.data.cache import ParsedDataset, load_source
from jaxarc.data.overlap import combine_tasks
from jaxarc.data.packing import select_tasks
from jaxarc.data.sources import EVALUATION, TRAINING, embedded_source, split_parts

BOTH = "AGI12"


def load_embedded(kind: str, split: str) -> ParsedDataset:
    """ARC-AGI-1, ARC-AGI-2, or both (`AGI12`) as `jaxarc.data.overlap` joins them.

    Of both, `train` holds no task that is in either evaluation split, `evaluation`
    every evaluation task once, and `all` every task once; where the two sets carry the
    same task, it is as in ARC-AGI-2.
    """
    if kind != BOTH:
        return load_source(embedded_source(kind, split))
    parts = split_parts(split)
    sets = {
        part: [load_source(embedded_source(one, part)) for one in ("AGI2", "AGI1")]
        for part in (EVALUATION, TRAINING)
    }
    # Evaluation comes first, so that of all tasks those are kept as they are there.
    wanted = [one for part in sets if part in parts for one in sets[part]]
    hidden = sets[EVALUATION] if parts == (TRAINING,) else []
    tasks = combine_tasks([s.tasks for s in wanted], [s.tasks for s in hidden])
    order = sorted(range(len(tasks.ids)), key=lambda row: tasks.ids[row])
    problems = tuple(problem for one in wanted for problem in one.problems)
    return ParsedDataset(select_tasks(tasks, order), problems)


def combined_ids(split: str = "all") -> tuple[str, ...]:
    """The ids of a split of both ARC-AGI sets, sorted; see `load_embedded`."""
    return load_embedded(BOTH, split).tasks.ids
