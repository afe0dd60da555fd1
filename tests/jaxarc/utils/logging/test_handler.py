"""A handler that handles nothing is silent."""

from jaxarc.utils.logging.handler import Handler


def test_every_event_may_be_ignored():
    handler = Handler()
    handler.start({})
    handler.step({})
    handler.episode({}, [])
    handler.batch(1, {})
    handler.evaluation({})
    handler.warning("full")
    handler.close()
    assert vars(handler) == {}
