"""Environments as other libraries want them, one module for each library."""
