"""Oracle: the episode that was played, frame by frame."""

import pytest
from typer.testing import CliRunner

from jaxarc.cli.app import app
from jaxarc.recording import TaskPlayer, player_config, save_recording
from jaxarc.tasks import open_dataset

pytestmark = pytest.mark.slow  # many programs to compile


@pytest.fixture
def file(tmp_path):
    tasks = open_dataset("AGI1", split="train")
    task = tasks.get_task_by_id("00d62c1b")
    player = TaskPlayer(task, "00d62c1b", player_config(tasks.config))
    player.step(14, (2, 2, 2, 2))
    player.step(14, (3, 3, 3, 3))
    return save_recording(tmp_path / "e.json", player.recording())


def run(*words):
    return CliRunner().invoke(app, ["replay", *map(str, words)])


def test_every_frame_in_the_terminal(file):
    output = run(file).output
    assert "0: Start" in output
    assert "2: Op 14: Flood Fill 4" in output
    assert output.count("Working grid (6x6)") == 3
    assert "every reward came out as recorded" in output


def test_frames_one_after_another(file):
    done = run(file, "--speed", "1000")
    assert done.exit_code == 0
    assert "Flood Fill 4" in done.output


def test_a_page_and_a_picture(file, tmp_path):
    page, picture = tmp_path / "e.html", tmp_path / "e.svg"
    done = run(file, "--html", page, "--svg", picture)
    assert done.exit_code == 0
    assert "Working grid (6x6)" not in done.output
    text = page.read_text()
    assert "Task 00d62c1b" in text
    assert "2: Op 14: Flood Fill 4" in text
    assert picture.read_text().startswith("<svg")


def test_another_result_is_an_error(file):
    file.write_text(
        file.read_text().replace('"success_bonus": 10.0', '"success_bonus": 9.0')
    )
    assert "step 1 of the episode gives reward" in str(run(file).exception)


def test_wrong_files_are_explained(file, tmp_path):
    assert "no replay file" in str(run(tmp_path / "none.json").exception)
    assert "is not a folder" in str(run(file, "--path", "/none").exception)
    assert run(file, "--html", tmp_path).exit_code == 2
