"""The run-time checker of slow tests: beartype, where an int may be a float."""

from beartype import BeartypeConf, beartype

checker = beartype(conf=BeartypeConf(is_pep484_tower=True))
