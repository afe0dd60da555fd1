"""Mechanisms and noise of structural causal models, sampled on the device."""
