"""The commands of `jaxrig trace`."""

from jaxtrace.cli.app import app

__all__ = ["app"]
