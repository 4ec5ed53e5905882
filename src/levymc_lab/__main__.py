"""The ``levymc`` command; light, so that Ctrl-C is quiet from the start."""

import sys

from levymc_lab._interrupt import be_quiet


def main() -> None:
    """Run the command, or report what to install."""
    be_quiet()
    try:
        from levymc_lab.cli import main as command
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        sys.exit(f"The levymc command needs {missing}: pip install 'levymc[lab]'.")
    command()


if __name__ == "__main__":
    main()
