"""The surrogate: one network from data sets to posteriors over causes."""
