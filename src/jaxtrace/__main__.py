"""`python -m jaxtrace`: the same as `jaxrig trace`."""

import sys

from jaxrig.cli import main as front_door


def main() -> None:
    """Hand the arguments to the front door; `--version` is its own."""
    given = sys.argv[1:]
    sys.argv = (
        ["jaxrig", *given] if given == ["--version"] else ["jaxrig", "trace", *given]
    )
    front_door()


if __name__ == "__main__":
    main()
