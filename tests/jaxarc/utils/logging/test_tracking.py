"""What is sent to the tracking service, which is played by a list here."""

import sys
from types import SimpleNamespace

import pytest

from arc_logs import log_config
from jaxarc.config import WandbConfig
from jaxarc.utils.logging.payloads import create_episode_summary
from jaxarc.utils.logging.tracking import WandbHandler


@pytest.fixture
def service(monkeypatch):
    """Everything the service is told, in order."""
    told = SimpleNamespace(started={}, logged=[], summary={}, finished=0)

    def init(**values):
        told.started = values
        return SimpleNamespace(
            log=told.logged.append, summary=told.summary, finish=finish
        )

    def finish():
        told.finished += 1

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    return told


def handler(settings=None, **values):
    return WandbHandler(log_config("out", wandb=values), settings)


def test_a_run_starts_as_configured(service):
    handler(
        project_name="p",
        entity="e",
        tags=("a", "b"),
        notes="n",
        group="g",
        job_type="j",
        offline_mode=True,
    )
    config = service.started.pop("config")
    assert config["wandb"]["project_name"] == "p"
    assert service.started == {
        "project": "p",
        "entity": "e",
        "tags": ["a", "b"],
        "notes": "n",
        "group": "g",
        "job_type": "j",
        "mode": "offline",
    }


def test_the_configuration_kept_is_a_choice(service):
    handler(save_config=False)
    assert service.started["config"] is None
    assert service.started["mode"] == "online"
    handler(WandbConfig(notes="mine"))
    assert service.started["config"]["notes"] == "mine"


def test_figures_are_sent_now_and_then(service):
    sender = handler(log_frequency=2)
    for number in range(1, 5):
        sender.batch(number, {"loss": float(number)})
        sender.episode(create_episode_summary(number, []), [])
    updates = [row for row in service.logged if "update_step" in row]
    assert updates == [{"update_step": 2, "loss": 2.0}, {"update_step": 4, "loss": 4.0}]
    episodes = [row["episode/episode_num"] for row in service.logged[1::2]]
    assert episodes == [2, 4]
    sender.evaluation({"rate": 0.5, "nested": {}})
    sender.close()
    assert service.summary == {"evaluation/rate": 0.5}
    assert service.finished == 1


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[wandb\]"'):
        handler()
