"""Graphs over variables: families of random ones, orders, and sets of causes."""
