"""Boundary conditions, one family per file; the registry is `tracking.boundary`."""
