"""The run-time checker of every test: beartype, where an int may stand for a float."""

from beartype import BeartypeConf, beartype

checker = beartype(conf=BeartypeConf(is_pep484_tower=True))
