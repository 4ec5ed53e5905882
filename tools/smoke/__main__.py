"""Build sdist and wheel, and use the wheel in empty environments: one without extras, one for each.

One more has the extras that README.md begins with, and runs its code.

``make smoke`` tries all, ``make smoke SMOKE="--python /path/to/python3.13 numpyro pymc"`` some, by
another Python than the one that built the wheel.  The wheel is built from the sdist, so that both
are tried, and each environment gets the newest versions that there are.  The programs beside this
one, ``with_<extra>.py``, are what somebody who asks for the extra does first.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FOR_CHECKOUTS = {"bench", "dev", "docs"}  # what they are for is not in the wheel
ALONE, README = "nothing", "readme"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make smoke", description=__doc__)
    parser.add_argument("extras", nargs="*", help="all of pyproject.toml if not given")
    parser.add_argument("--python", default=sys.executable, help="that of the environments")
    given = parser.parse_args()
    extras = given.extras or [ALONE, README, *declared_extras()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder / "dist")
        failed = [e for e in extras if not is_useful(wheel, e, given.python, folder / e)]
    if failed:
        sys.exit(f"The wheel fails with {', '.join(failed)}.")


def declared_extras() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return sorted(set(project["optional-dependencies"]) - FOR_CHECKOUTS)


def build(folder: Path) -> Path:
    """The wheel, made from the sdist, after both have been checked for an index."""
    run("-m", "build", "--outdir", str(folder), str(ROOT), quiet=True)
    run("-m", "twine", "check", "--strict", *map(str, folder.iterdir()))
    (wheel,) = folder.glob("*.whl")
    return wheel


def is_useful(wheel: Path, extra: str, base: str, folder: Path) -> bool:
    """Whether the program of an extra runs where there is nothing but the wheel and its extra."""
    began = time.monotonic()
    asked = str(wheel) if extra == ALONE else f"{wheel}[{brought(extra)}]"
    environment, python = folder / "environment", folder / "environment" / "bin" / "python"
    run("-m", "uv", "venv", "--quiet", "--python", base, str(environment))
    run("-m", "uv", "pip", "install", "--quiet", "--python", str(python), asked)
    program = [python, "-I", HERE / f"with_{extra}.py"]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)
    verdict = "failed" if done.returncode else "works"
    print(f"{extra:<10} {verdict} in {time.monotonic() - began:.0f} s", flush=True)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
    return not done.returncode


def brought(extra: str) -> str:
    """The extras to install: those that README.md begins with, or the one that is named."""
    if extra != README:
        return extra
    return re.findall(r"pip install '\.\[(.+?)\]'", (ROOT / "README.md").read_text("utf-8"))[0]


def run(*arguments: str, quiet: bool = False) -> None:
    output = subprocess.DEVNULL if quiet else None
    subprocess.run([sys.executable, *arguments], check=True, stdout=output)


if __name__ == "__main__":
    main()
