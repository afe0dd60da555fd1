"""What the package plugs into the command `jaxrig`; each part is imported on use."""

from jaxrig.systems import package_system

SYSTEM = package_system("trace", "Particle tracking", "jaxtrace")
