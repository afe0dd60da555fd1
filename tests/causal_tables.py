"""Small CSV tables of a chain X -> Z -> Y, right and wrong in known ways."""

import numpy as np

HEADER = "X,Z,Y,intervention_targets"


def chain_lines(rows=24, acted=4, seed=0):
    """Lines of a table; X is set in the last `acted` rows."""
    random = np.random.default_rng(seed)
    lines = []
    for row in range(rows):
        forced = row >= rows - acted
        x = random.choice([-2.0, 2.0]) if forced else random.normal()
        z = 1.5 * x + random.normal()
        y = z + 0.5 * random.normal()
        lines.append(f"{x:.4f},{z:.4f},{y:.4f},{'X' if forced else ''}")
    return lines


def write_table(folder, lines=None, header=HEADER, name="data.csv"):
    path = folder / name
    path.write_text("\n".join([header, *(lines or chain_lines())]) + "\n")
    return path
