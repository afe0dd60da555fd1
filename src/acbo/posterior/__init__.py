"""Distributions over the causes of a target, and the exact ones of linear models."""
