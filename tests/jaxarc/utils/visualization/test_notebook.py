"""What a notebook would show."""

import numpy as np

from jaxarc.utils.visualization.notebook import display_grid, display_task


def test_a_grid_shows_itself(read_svg):
    grid = np.array([[1, 2], [3, -1]])
    shown = display_grid(grid, np.array([[True, True], [False, False]]), "Mine")
    for markup in (shown._repr_svg_(), shown._repr_html_()):
        picture = read_svg(markup)
        assert picture.texts == ["Mine (1x2)"]
        assert picture.cells(160.0)[0].tolist() == [[1, 2]]


def test_tasks_and_pairs_show_themselves(task, read_svg):
    whole = read_svg(display_task(task, "Whole")._repr_svg_())
    assert {"Whole", "Train 2", "Test 1"} <= set(whole.texts)
    pair = read_svg(display_task(task.get_train_pair(1))._repr_svg_())
    assert pair.texts == ["Input (5x2)", "Output (5x6)"]
