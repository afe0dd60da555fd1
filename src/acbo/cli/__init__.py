"""The commands of `jaxrig causal`."""

from acbo.cli.app import app

__all__ = ["app"]
