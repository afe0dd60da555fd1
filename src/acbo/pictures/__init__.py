"""Drawings of what is known: graphs, posteriors, calibration and regret."""
