"""The library alone: what needs an extra names it, and everything else does without."""

import os
import subprocess
import sys
import textwrap

EXTRAS = (
    *("arviz", "flatbuffers", "jinja2", "matplotlib", "rich", "typer", "xarray", "zarr"),
    *("blackjax", "diffrax", "equinox", "funsor", "numpyro", "optax", "pymc", "pytensor"),
)

WITHOUT = f"""
import importlib.abc, importlib.machinery, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


def run_without_extras(script):
    """Run a script in a process that has none of the extras."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
    )


def test_the_library_runs_without_extras_and_names_those_that_are_missing():
    done = run_without_extras("""
        import jax, jax.numpy as jnp, levymc
        walk = levymc.levy_walk(lambda x: -x * x / 2, 1.0)
        result = levymc.sample(walk, jax.random.key(0), jnp.zeros(2), 20)
        print(result)
        for call in (result.to_arviz, lambda: levymc.diagnostics.ess(result), levymc.enough):
            try:
                call()
            except ImportError as error:
                print(error)
    """)
    assert done.returncode == 0, done.stderr
    shown, *errors = done.stdout.splitlines()
    assert "2 chains × 20 draws" in shown
    assert len(errors) == 3
    assert all("levymc[arviz]" in error for error in errors)


def test_a_store_names_its_extra():
    done = run_without_extras("""
        import importlib.util, jax, jax.numpy as jnp, levymc
        found = importlib.util.find_spec
        importlib.util.find_spec = lambda name: None if name == "flatbuffers" else found(name)
        walk = levymc.levy_walk(lambda x: -x * x / 2, 1.0)
        try:
            levymc.sample(walk, jax.random.key(0), jnp.zeros(2), 20, store="nowhere/run")
        except ImportError as error:
            print(error)
    """)
    assert "levymc[store]" in done.stdout, done.stderr


def test_what_connects_to_a_library_names_its_extra():
    done = run_without_extras("""
        import jax, levymc
        calls = (
            lambda: levymc.optax.sgld(0.1, key=jax.random.key(0)),
            lambda: levymc.interop.diffrax,
            lambda: levymc.interop.blackjax.sampling_api(levymc.mafla),
        )
        for call in calls:
            try:
                call()
            except ImportError as error:
                print(error)
    """)
    assert done.returncode == 0, done.stderr
    lines = zip(done.stdout.splitlines(), ("optax", "diffrax", "auto"), strict=True)
    assert all(f"pip install 'levymc[{extra}]'" in line for line, extra in lines)


def test_the_command_names_its_extra_in_one_sentence():
    done = run_without_extras("""
        from levymc_lab.__main__ import main
        main()
    """)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("pip install 'levymc[lab]'.")
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_importing_the_library_loads_no_extra_nor_scipy_and_changes_no_setting_of_jax():
    script = (
        "import jax; before = dict(jax.config.values); import levymc, sys;"
        "assert dict(jax.config.values) == before; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    loaded.discard("flatbuffers")  # which JAX itself imports, if it is there
    assert not loaded & {*EXTRAS, "scipy", "levymc_lab"}
