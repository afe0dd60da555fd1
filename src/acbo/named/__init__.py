"""Models, samples, tables and files by name: the world outside compiled code."""
