"""From a CSV table of experiments to the next one, again and again.

The table has a column for every variable and one, `intervention_targets`, that names
what was set in a row. Here a simulated plant answers in place of the laboratory.
"""

import numpy as np

import acbo

NAMES = ("temperature", "feed", "stirring", "foam", "yield")
RANGES = {"temperature": (20.0, 40.0), "feed": (1.0, 5.0), "stirring": (100.0, 500.0)}


def run_plant(rng: np.random.Generator, **settings: float) -> dict[str, float]:
    """One day of the plant; foam goes along with the yield and causes nothing."""

    def draw(mean: float, spread: float) -> float:
        return mean + spread * float(rng.normal())

    row = {"temperature": draw(30, 2), "feed": draw(3, 0.5), "stirring": draw(300, 40)}
    row |= settings
    row["yield"] = 2 * row["temperature"] - 6 * row["feed"] + draw(0, 2)
    row["foam"] = 0.5 * row["yield"] + 0.02 * row["stirring"] + draw(0, 1)
    return row


rng = np.random.default_rng(0)
lines = [",".join((*NAMES, "intervention_targets"))]
for settings in [{}] * 30 + [{"temperature": 34.0}, {"feed": 2.0}, {"stirring": 400.0}]:
    row = run_plant(rng, **settings)
    lines.append(",".join([*(f"{row[n]:.3f}" for n in NAMES), "; ".join(settings)]))
with open("plant.csv", "w") as file:
    file.write("\n".join(lines) + "\n")

table = acbo.read_csv("plant.csv", target="yield")
seen = acbo.Experiments(
    np.asarray(table.values),
    np.asarray(table.intervened),
    table.names,
    "yield",
    RANGES,
    "MAXIMIZE",
)
policy = acbo.load_policy()
best = max(float(y) for y in seen.values[:, seen.names.index("yield")])
print(f"best yield in the table: {best:.1f}")
for each in policy.explain(seen):
    print(
        f"  {each.variable}: a direct cause with probability "
        f"{each.parent_probability:.0%}; at {each.value:.1f} the yield is expected at "
        f"{each.expected:.1f} ± {each.std:.1f}"
    )
for number in range(1, 4):
    variable, value = policy.propose(seen)
    row = run_plant(rng, **{variable: value})
    print(f"experiment {number}: {variable} = {value:.1f} gives {row['yield']:.1f}")
    seen = seen.add(row, [variable])
