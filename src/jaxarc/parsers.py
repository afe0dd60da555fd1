"""A door to the documented name: parsers live in `jaxarc.tasks`."""

from jaxarc.tasks import ArcAgiParser, ConceptArcParser, MiniArcParser

__all__ = ["ArcAgiParser", "ConceptArcParser", "MiniArcParser"]
