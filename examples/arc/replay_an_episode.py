"""Play a task by hand, keep the episode, run it again, and write it as pictures."""

from pathlib import Path

import numpy as np

from jaxarc.draw import (
    draw_episode,
    episode_section,
    render_rgb,
    save_drawing,
)
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.recording import (
    TaskPlayer,
    load_recording,
    player_config,
    run_again,
    save_recording,
)
from jaxarc.tasks import open_dataset
from jaxrig.report import Report

# Areas enclosed by green turn yellow: one flood fill for each, in demonstration 5.
tasks = open_dataset("AGI1", split="train")
config = player_config(tasks.config)
player = TaskPlayer(tasks.get_task_by_id("00d62c1b"), "00d62c1b", config, pair=4)
for row, column in ((2, 8), (3, 9), (5, 9), (12, 8), (15, 16)):
    frame = player.step(Op.FLOOD_FILL_4, (row, column, row, column))
    print(f"flood fill at {row}, {column}: similarity {frame.similarity:.3f}")
print(f"solved: {bool(player.solved[4])}")

# A recording is a small JSON file of actions; running it again checks every reward.
path = save_recording("episode.json", player.recording())
recording = load_recording(path)
frames = run_again(recording, recording.load_task())
print(f"{path}: {path.stat().st_size:,} bytes, {len(frames) - 1} steps run again")

title = f"Task {recording.task}"
save_drawing(draw_episode(frames, title), "episode.svg")
report = Report(title)
report.add(episode_section("Episode", frames))
report.write("episode.html")
try:
    import imageio.v3 as imageio  # of the extra `viz`
except ImportError:
    print('an animation needs imageio: pip install -e ".[viz]"')
else:
    pictures = np.stack([render_rgb(frame.grid, cell_size=16) for frame in frames])
    imageio.imwrite("episode.gif", pictures, duration=600, loop=0)
for written in sorted(Path().glob("episode.*")):
    print(f"wrote {written}")
