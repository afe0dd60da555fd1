"""Lagrangian particle tracking in unsteady flows on grids and meshes."""
