"""``python -m levymc`` is the ``levymc`` command."""

from levymc.cli import main

if __name__ == "__main__":
    main()
