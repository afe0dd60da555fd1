"""`python -m jaxrig` is the command `jaxrig`."""

from jaxrig.cli import main

if __name__ == "__main__":
    main()
