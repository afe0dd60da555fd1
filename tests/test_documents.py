"""The users' documents run, block after block, and every block is accounted for."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import jax
import pytest

import documents_arc
import documents_causal
import documents_trace
import jaxarc
from document_accounts import ATTRIBUTES, CORRECTIONS, HOMES, NO_NAMES, OTHERS, OUTLINES
from documents import (
    SEEDS,
    blocks_of,
    corrected,
    coverage,
    present,
    prose_of,
    python_of,
    run,
    text_of,
)
from documents_page import PAGE, tables
from jaxarc.config.outputs import DebugConfig, VisualizationConfig
from jaxarc.config.root import read_yaml

ROOT = Path(__file__).parent.parent
GUIDES = {**documents_arc.GUIDES, **documents_causal.GUIDES, **documents_trace.GUIDES}
pytestmark = pytest.mark.skipif(
    not present(), reason=f"the users' documents are not in {SEEDS}"
)


def run_as_reader(number, guide_of, folder, monkeypatch, capfd):
    monkeypatch.chdir(folder)
    with guide_of(folder, monkeypatch) as guide:
        run(number, guide)
        jax.effects_barrier()
    said = capfd.readouterr().out
    assert "Failed" not in said
    for line in guide.said:
        assert line in said


@pytest.mark.parametrize("number", GUIDES)
def test_the_document_runs(number, tmp_path, monkeypatch, capfd, record_property):
    run_as_reader(number, GUIDES[number], tmp_path, monkeypatch, capfd)
    counts = ", ".join(f"{count} {name}" for name, count in coverage(number).items())
    record_property("document", f"document {number}: {counts}")


@pytest.mark.slow
def test_the_causal_guide_runs_with_the_networks_themselves(
    tmp_path, monkeypatch, capfd
):
    guide = documents_causal.guide_with_networks
    run_as_reader("003", guide, tmp_path, monkeypatch, capfd)


def test_every_document_is_run():
    assert set(GUIDES) == set(present())


def test_every_block_is_accounted_for():
    blocks = {(b.document, b.heading): b for n in present() for b in blocks_of(n)}
    python = {at for at, block in blocks.items() if block.language == "python"}
    assert set(OTHERS) == set(blocks) - python
    assert {(c.document, c.block) for c in CORRECTIONS} <= python
    assert set(OUTLINES) <= python


@pytest.mark.parametrize("number", GUIDES)
def test_no_correction_is_more_than_needed(number):
    """Each says something else, and nothing it leaves alone."""
    for block in python_of(number):
        own = [
            c for c in CORRECTIONS if (c.document, c.block) == (number, block.heading)
        ]
        assert (corrected(block) != block.text) == bool(own)
        for correction in own:
            assert correction.old != correction.new
            assert block.text.count(correction.old) >= 1


def test_the_page_says_the_same():
    assert PAGE.read_text().endswith(tables()), "run tests/documents_page.py"


def test_the_settings_of_the_callback_guide_are_settings():
    (block,) = [b for b in blocks_of("002") if b.language == "yaml"]
    settings = VisualizationConfig.from_hydra(read_yaml(block.text))
    assert settings.debug == DebugConfig()
    assert settings.validate() == ()
    (place,) = re.findall(r"^# (\S+\.yaml)$", block.text, re.MULTILINE)
    assert (Path(str(jaxarc.__file__)).parent / place).is_file()


def test_the_variables_of_the_causal_guide_are_settings_of_jax():
    (block,) = [b for b in blocks_of("003") if b.language == "bash"]
    variables = re.findall(r"export (\w+)=", block.text)
    assert len(variables) == 2
    for name in variables:
        assert hasattr(jax.config, name.lower())


def find(number: str, dotted: str) -> Any:
    """What a name in a sentence means: of the document's modules, or of a package."""
    first, *rest = dotted.replace("jnp.", "jax.numpy.").split(".")
    homes = [importlib.import_module(home) for home in HOMES[number]]
    owner: Any = next((h for h in homes if hasattr(h, first)), None)
    value = importlib.import_module(first) if owner is None else getattr(owner, first)
    for name in rest:
        value = getattr(value, name)
    return value


def named(number: str) -> list[str]:
    return sorted(set(re.findall(r"`([^`\n]+)`", prose_of(number))))


@pytest.mark.parametrize("number", GUIDES)
def test_what_the_sentences_name_is_there(number):
    for span in named(number):
        if (number, span) in NO_NAMES:
            continue
        if owner := ATTRIBUTES.get((number, span)):
            module, _, name = owner.rpartition(".")
            assert span in dir(getattr(importlib.import_module(module), name))
        elif "/" in span or span.endswith(".py"):
            assert (ROOT / span).exists() or (ROOT / "examples" / span).exists(), span
        else:
            check_call(number, span)


def check_call(number: str, span: str) -> None:
    """`name(a, b)`: something that is called with a and b, and needs no more."""
    name, _, given = span.removesuffix(")").partition("(")
    value = find(number, name)
    if given:
        parameters = list(inspect.signature(value).parameters.values())
        said = given.split(", ")
        assert [p.name for p in parameters[: len(said)]] == said, span
        assert all(p.default is not p.empty for p in parameters[len(said) :]), span


@pytest.mark.parametrize("number", GUIDES)
def test_what_the_documents_import_is_there_even_in_comments(number):
    lines = re.findall(r"^[ #]*from ([\w.]+) import ([\w, ]+)$", text_of(number), re.M)
    for module, names in lines:
        if module == "jax.experimental":
            continue  # mixed_precision: corrected, JAX has none
        for name in names.split(", "):
            assert hasattr(importlib.import_module(module), name), f"{module}.{name}"
