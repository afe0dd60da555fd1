"""Pictures of particles, paths and densities: still, to turn, as films, on pages."""

from jaxtrace.visualization.animate import (
    animate_trajectory_plotly_2d,
    animate_trajectory_plotly_3d,
    save_html,
)
from jaxtrace.visualization.canvas import particle_canvas, trajectory_section
from jaxtrace.visualization.frames import render_frames_2d, render_frames_3d
from jaxtrace.visualization.maps import plot_density_2d, plot_field_2d, plot_slice_yz
from jaxtrace.visualization.static import (
    plot_particles_2d,
    plot_particles_3d,
    plot_trajectory_2d,
    plot_trajectory_3d,
)
from jaxtrace.visualization.video import (
    encode_video_from_frames,
    save_gif_from_frames,
)

__all__ = [
    "animate_trajectory_plotly_2d",
    "animate_trajectory_plotly_3d",
    "encode_video_from_frames",
    "particle_canvas",
    "plot_density_2d",
    "plot_field_2d",
    "plot_particles_2d",
    "plot_particles_3d",
    "plot_slice_yz",
    "plot_trajectory_2d",
    "plot_trajectory_3d",
    "render_frames_2d",
    "render_frames_3d",
    "save_gif_from_frames",
    "save_html",
    "trajectory_section",
]
