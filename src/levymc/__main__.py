"""``python -m levymc`` is the ``levymc`` command."""

from levymc_lab.__main__ import main

if __name__ == "__main__":
    main()
