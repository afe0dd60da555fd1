"""Compare `acbo.infer_graphs` with other programs for causal discovery.

python benchmarks/causal_peers.py TABLES --sizes 8,16 --tables 8 --sachs FOLDER
PEERS/bin/python benchmarks/causal_peers.py TABLES --peers
python benchmarks/causal_peers.py TABLES --show

The first command draws tables into the folder TABLES and answers them by ours and by
least squares (|t| > 3). The second runs in an environment of its own, where
`causal-learn`, `lingam` and `dagma` are installed, and adds what they answer with their
default settings. The third prints a table: mean F1 of the directed edges, and median
CPU seconds without the first table of a kind, for which ours compiles.

The others know nothing of interventions and get all rows. An edge that PC or GES leaves
without a direction counts as right where the truth has it in either direction.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ALPHA = 0.05  # of PC's tests
SMALLEST_WEIGHT = 0.3  # of DAGMA: its own default for the edges that it keeps

CELLS = (  # family, mechanism, noise, observational and interventional rows, weights
    ("er1", "linear", "gaussian", (120, 0), "plain"),
    ("er1", "linear", "exponential", (120, 0), "plain"),
    ("er2", "linear", "gaussian", (100, 20), "plain"),
    ("er2", "linear", "exponential", (100, 20), "plain"),
    ("er1", "tanh", "gaussian", (100, 20), "plain"),
)


def draw(folder: Path, sizes: list[int], tables: int, sachs: Path | None) -> None:
    """Write tables with their true graphs, one file each."""
    from causal_table import draw_table

    from acbo.problems import SACHS_EDGES, load_sachs

    for d in sizes:
        for number, cell in enumerate(CELLS):
            family, mechanism, noise, rows, _ = cell
            name = f"{family}, {mechanism}, {noise}, {rows[0]}+{rows[1]}, d={d}"
            for table in range(tables):
                random = np.random.default_rng([table, d, number])
                graph, values, flags = draw_table(random, d, *cell)
                file = folder / f"{d:02}-{number}-{table:02}.npz"
                np.savez(file, graph=graph, values=values, flags=flags, name=name)
    if sachs is not None:
        data = load_sachs(sachs)
        graph = [[(a, b) in SACHS_EDGES for b in data.names] for a in data.names]
        np.savez(
            folder / "sachs.npz",
            graph=np.array(graph),
            values=np.asarray(data.values, float),
            flags=np.asarray(data.intervened),
            name="Sachs, 1755+4091, d=11",
        )


def ours(values: np.ndarray, flags: np.ndarray) -> np.ndarray:
    """Return the edges that are likelier than not."""
    import acbo

    return np.asarray(acbo.infer_graphs(values, flags).edge_probs) > 0.5


def least_squares(values: np.ndarray, flags: np.ndarray) -> np.ndarray:
    """Return the edges of |t| > 3 in a regression on all others."""
    from causal_table import t_statistics

    return t_statistics(values, flags) > 3


def _causal_learn(graph: np.ndarray) -> np.ndarray:
    """Return edges [cause, effect], both ways where there is no direction."""
    # Its matrix has -1 at [i, j] and 1 at [j, i] for i -> j, and -1 at both for i - j.
    return (graph == -1) & (graph.T != 0)


def pc(values: np.ndarray, flags: np.ndarray) -> np.ndarray:
    """Return what the PC algorithm finds with Fisher's z-test."""
    from causallearn.search.ConstraintBased.PC import pc  # pyright: ignore

    return _causal_learn(pc(values, ALPHA, show_progress=False).G.graph)


def ges(values: np.ndarray, flags: np.ndarray) -> np.ndarray:
    """Return what greedy equivalence search finds with the BIC score."""
    from causallearn.search.ScoreBased.GES import ges  # pyright: ignore

    return _causal_learn(ges(values)["G"].graph)


def direct_lingam(values: np.ndarray, flags: np.ndarray) -> np.ndarray:
    """Return what DirectLiNGAM finds."""
    import lingam  # pyright: ignore

    model = lingam.DirectLiNGAM()
    model.fit(values)
    return model.adjacency_matrix_.T != 0


def dagma(values: np.ndarray, flags: np.ndarray) -> np.ndarray:
    """Return what DAGMA finds with least squares; its result is [cause, effect]."""
    from dagma.linear import DagmaLinear  # pyright: ignore

    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    model = DagmaLinear(loss_type="l2")
    return model.fit(scaled, lambda1=0.02, w_threshold=SMALLEST_WEIGHT) != 0


OWN = {"acbo": ours, "least squares": least_squares}
PEERS = {"PC": pc, "GES": ges, "DirectLiNGAM": direct_lingam}
SLOW_PEERS = {"DAGMA": dagma}  # a minute a table: two of each kind


def answer(
    folder: Path, methods: dict[str, Callable[..., np.ndarray]], only: str = "*"
) -> None:
    """Answer every table by every method, and write F1 and seconds beside it."""
    for path in sorted(folder.glob(f"{only}.npz")):
        table = np.load(path)
        file = path.with_suffix(".json")
        known = json.loads(file.read_text()) if file.exists() else {}
        for name, method in methods.items():
            if name == "acbo" and path.stem == "sachs":  # its size is compiled first
                method(table["values"], table["flags"])
            start = time.process_time()
            found = method(table["values"], table["flags"])
            seconds = time.process_time() - start
            score = f1(found, table["graph"], name in ("PC", "GES"))
            known[name] = {"f1": score, "seconds": seconds}
        file.write_text(json.dumps(known))
        print(path.stem, flush=True)


def f1(found: np.ndarray, graph: np.ndarray, undirected: bool) -> float:
    """Return F1 of directed edges; with `undirected`, an edge found both ways is one
    without a direction, which is right where the truth has it either way.
    """
    called = found.sum()
    if undirected:
        called = called - (found & found.T).sum() / 2
    return float(2 * (found & graph).sum() / max(called + graph.sum(), 1))


def show(folder: Path) -> None:
    """Print a line for each kind of table: F1 and seconds of every method."""
    kinds: dict[str, list[dict]] = {}
    for path in sorted(folder.glob("*.json")):
        name = str(np.load(path.with_suffix(".npz"))["name"])
        kinds.setdefault(name, []).append(json.loads(path.read_text()))
    methods = [*OWN, *PEERS, *SLOW_PEERS]
    print("| table | " + " | ".join(methods) + " |")
    print("|---" * (len(methods) + 1) + "|")
    for name, tables in kinds.items():
        cells = []
        for method in methods:
            found = [each[method] for each in tables if method in each]
            seconds = [each["seconds"] for each in found[len(found) > 1 :]]
            mean = np.mean([each["f1"] for each in found]) if found else np.nan
            cells.append(f"{mean:.2f} ({np.median(seconds):.2g} s)" if found else "")
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", default="8")
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--sachs", type=Path, help="folder of the Sachs data")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    if given.show:
        show(given.folder)
    elif given.peers:
        answer(given.folder, PEERS)
        answer(given.folder, SLOW_PEERS, "*-0[01]")
    else:
        given.folder.mkdir(parents=True, exist_ok=True)
        sizes = [int(each) for each in given.sizes.split(",")]
        draw(given.folder, sizes, given.tables, given.sachs)
        answer(given.folder, OWN)
