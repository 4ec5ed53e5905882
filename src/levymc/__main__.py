"""The ``levymc`` command, also as ``python -m levymc``; it lives in the extra `lab`."""

import sys


def main() -> None:
    """Run the command, or say what to install."""
    try:
        from levymc_lab.cli import main as command
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        sys.exit(f"The levymc command needs {missing}: pip install 'levymc[lab]'.")
    command()


if __name__ == "__main__":
    main()
