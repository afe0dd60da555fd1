"""The command `jaxrig arc`: look at tasks, play them, and run agents on them."""

from jaxarc.cli.app import app

__all__ = ["app"]
