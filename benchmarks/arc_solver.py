"""Evaluate solvers on the tests of MiniARC; print JSON with every test.

    python benchmarks/arc_solver.py MiniARC [CHECKPOINT ...]

Without a checkpoint the shipped one is evaluated. Of every checkpoint: tests right with
one and two attempts, those that equal one of their demonstrations up to symmetry and
color apart, and the share of right first answers by confidence. The last entry has mean
and standard deviation over the checkpoints.
"""

import argparse
import json
import time
from itertools import pairwise

import jax
import numpy as np

from jaxarc.learning.solver import load_solver, predict_all
from jaxarc.tasks.parsers import open_dataset

BINS = (0.0, 0.4, 0.8, 0.95, 1.01)


def symmetries(grid):
    return [np.rot90(np.fliplr(grid) if s >= 4 else grid, s % 4) for s in range(8)]


def equal_up_to_color(one, other):
    """Whether a permutation of the colors, 0 kept, takes one to the other."""
    pairs = set(zip(one.ravel().tolist(), other.ravel().tolist(), strict=True))
    pairs.add((0, 0))
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def is_copy(task):
    """Whether a demonstration becomes the test by one symmetry and one recoloring."""
    wanted = np.concatenate(task.test[0])
    return any(
        equal_up_to_color(np.concatenate(turned), wanted)
        for pair in task.train
        for turned in zip(*map(symmetries, pair), strict=True)
    )


def evaluate(checkpoint, parser, copies, votes, seed):
    networks = load_solver(checkpoint)
    start = time.process_time()
    answers = predict_all(networks, parser.buffer(), votes, jax.random.key(seed))
    seconds = time.process_time() - start
    truth = [parser.get_raw_task(i).test[0][1] for i in parser.tasks.ids]
    right = np.array(
        [
            [n < len(t[0]) and np.array_equal(t[0][n].grid, y) for n in (0, 1)]
            for t, y in zip(answers, truth, strict=True)
        ]
    )
    sure = np.array([tests[0][0].confidence for tests in answers])
    count = lambda rows: [int(right[rows, 0].sum()), int(right[rows].any(1).sum())]
    bins = [(sure >= a) & (sure < b) for a, b in pairwise(BINS)]
    return {
        "checkpoint": str(checkpoint or "shipped"),
        "members": int(networks.head.shape[0]),
        "all": count(np.ones(len(sure), bool)),
        "copies": count(copies),
        "others": count(~copies),
        "by_confidence": [
            {"from": a, "tests": int(rows.sum()), "right": count(rows)}
            for a, rows in zip(BINS, bins, strict=False)
        ],
        "cpu_seconds": round(seconds, 1),
        "solved": [i for i, r in zip(parser.tasks.ids, right, strict=True) if r.any()],
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("path")
    arguments.add_argument("checkpoints", nargs="*", default=[None])
    arguments.add_argument("--votes", type=int, default=16)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    parser = open_dataset("Mini", given.path)
    copies = np.array([is_copy(parser.get_raw_task(i)) for i in parser.tasks.ids])
    found = [
        evaluate(path, parser, copies, given.votes, given.seed)
        for path in given.checkpoints or [None]
    ]
    rates = {
        name: [
            np.mean([f[name] for f in found], 0),
            np.std([f[name] for f in found], 0),
        ]
        for name in ("all", "copies", "others")
    }
    summary = {k: [np.round(x, 2).tolist() for x in v] for k, v in rates.items()}
    counts = {"tests": len(copies), "copies": int(copies.sum())}
    print(json.dumps({**counts, "results": found, "mean_and_std": summary}, indent=1))


if __name__ == "__main__":
    main()
