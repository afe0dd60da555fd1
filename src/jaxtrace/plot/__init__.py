"""Plots of particles, paths and densities: static, interactive, films, report parts."""

from jaxtrace.plot.animate import animate_trajectory, save_html
from jaxtrace.plot.canvas import particle_canvas, trajectory_section
from jaxtrace.plot.films import (
    encode_video_from_frames,
    render_frames,
    save_gif_from_frames,
)
from jaxtrace.plot.maps import plot_density_2d, plot_field_2d, plot_slice_yz
from jaxtrace.plot.static import (
    plot_particles_2d,
    plot_particles_3d,
    plot_trajectory_2d,
    plot_trajectory_3d,
)

__all__ = [
    "animate_trajectory",
    "encode_video_from_frames",
    "particle_canvas",
    "plot_density_2d",
    "plot_field_2d",
    "plot_particles_2d",
    "plot_particles_3d",
    "plot_slice_yz",
    "plot_trajectory_2d",
    "plot_trajectory_3d",
    "render_frames",
    "save_gif_from_frames",
    "save_html",
    "trajectory_section",
]
