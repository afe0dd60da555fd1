"""The documented path of `get_config`."""

from jaxarc.config.package_files import get_config

__all__ = ["get_config"]
