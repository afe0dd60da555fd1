"""What causes Y: the exact posterior and the network's, on the same rows, twice."""

import acbo
from jaxrig import measure

TRUE = {"X1", "X3"}
model = acbo.create_linear_scm(
    ("X1", "X2", "X3", "X4", "Y"),
    {
        ("X1", "X2"): 1.0,
        ("X1", "Y"): 1.5,
        ("X3", "Y"): -1.0,
        ("X3", "X4"): 1.0,
        ("Y", "X4"): 0.8,
    },
    target="Y",
    ranges={name: (-2.0, 2.0) for name in ("X1", "X2", "X3", "X4")},
)
surrogate = acbo.load_surrogate()


def ask_exactly(values, intervened):
    """Sum over every graph with at most three causes for each variable."""
    return acbo.exact_parent_posterior(values, intervened, "Y", names=model.names)


def ask_network(values, intervened):
    """One pass of the trained network."""
    return surrogate.posterior(values, intervened, "Y", model.names)


for observed, set_rows in ((20, 0), (100, 10)):
    rows = acbo.sample_from_scm(model, n_samples=observed, seed=1)
    for number, name in enumerate(("X1", "X2", "X3", "X4")):
        if set_rows:
            do = acbo.create_perfect_intervention({name}, {name: 2.0})
            rows = rows + acbo.sample_with_intervention(model, do, set_rows, number)
    given = acbo.samples_to_arrays(rows, model.names)

    print(f"{observed} rows observed, {set_rows} with each variable set")
    for name, ask in {"exact": ask_exactly, "network": ask_network}.items():
        found = ask(*given)
        causes, share = found.top_sets(1)[0]
        probabilities = sorted(found.parent_probs().items())
        mark = "the true one" if set(causes) == TRUE else "not the true one"
        timing = measure(ask, *given, repeats=5)
        print(f"  {name}: " + ", ".join(f"{n} {p:.2f}" for n, p in probabilities))
        print(f"    likeliest set {sorted(causes)} with {share:.2f}, {mark}")
        print(f"    entropy {found.entropy:.2f} nats, {timing.median * 1e3:.0f} ms")
