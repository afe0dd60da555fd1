"""Plots of particles, paths and densities: static, interactive, films, report parts."""

from jaxtrace.plot.canvas import particle_canvas
from jaxtrace.plot.films import (
    animate_trajectory,
    encode_video_from_frames,
    render_frames,
)
from jaxtrace.plot.pictures import (
    plot_density_2d,
    plot_field_2d,
    plot_particles,
    plot_trajectory,
)

__all__ = [
    "animate_trajectory",
    "encode_video_from_frames",
    "particle_canvas",
    "plot_density_2d",
    "plot_field_2d",
    "plot_particles",
    "plot_trajectory",
    "render_frames",
]
