"""Amortized causal Bayesian optimization: what causes a target, and how to move it."""
