"""The shared core: knows arrays, devices and hosts; knows no domain."""
