# Everything below needs Python 3.11 or newer with pip, and make; the rest is installed into .venv.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo docs test quick-tests test-all test-oldest test-newest smoke lint format types fuzz bench lock clean

PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo python3)
JOBS ?= 2

# An environment that make made with another Python is made anew; keep both with VENV=.venv-3.13, say.
# One that it did not make is somebody's own, and left alone.
VENV := .venv
BIN := $(VENV)/bin/python
PRINT_VERSION := 'import sys; print("%d.%d" % sys.version_info[:2])'
VERSION := $(shell "$(PYTHON)" -c $(PRINT_VERSION) 2>/dev/null)
INSTALLED := $(VENV)/.installed-$(VERSION)
INTERRUPTED := $(VENV)/.installing
PIP = "$(PYTHON)" -m pip --disable-pip-version-check --python $(BIN) install -q

OLDEST_JAX := 0.9.0
LIBRARY_TESTS := tests --ignore=tests/lab --ignore=tests/fuzz
PYTEST = -m pytest -q -n $(JOBS) --dist worksteal

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' Makefile

demo: $(INSTALLED)  ## four samplers on a double well: table, picture and page
	@$(BIN) -m levymc demo

docs: $(INSTALLED)  ## the site, into docs/_build/html; a warning is an error
	$(BIN) -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo "Open docs/_build/html/index.html in a browser."

# Two workers on two cores: further threads of NumPy's would only wait for them.
test test-all test-oldest test-newest: export OPENBLAS_NUM_THREADS := 1

# At once, because mypy would leave all cores but one idle.
test:  ## lint, check the types, run the tests and doctests
	@$(MAKE) --no-print-directory -j 2 lint quick-tests

quick-tests: $(INSTALLED)
	$(BIN) $(PYTEST) -m "not nightly"

test-all: lint  ## all tests, also those that take long: kills, wide grids, a browser
	LEVYMC_TEST_FULL=1 $(BIN) $(PYTEST)

test-oldest: .venv-oldest/.installed-$(VERSION)  ## the library's tests with the oldest JAX that is allowed
	.venv-oldest/bin/python $(PYTEST) -m "not nightly" $(LIBRARY_TESTS)

test-newest: .venv-newest/.installed-$(VERSION)  ## the library's tests with the newest JAX that there is
	.venv-newest/bin/python $(PYTEST) -m "not nightly" $(LIBRARY_TESTS)

smoke: $(INSTALLED)  ## build wheel and sdist, use the wheel with each extra in an empty environment
	@$(BIN) -c 'import build, twine, uv' 2>/dev/null || $(PIP) build twine uv
	$(BIN) tools/smoke $(SMOKE)

types: $(INSTALLED)  ## how much of the public interface has known types
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/basedpyright --verifytypes levymc --ignoreexternal

lint: $(INSTALLED)  ## ruff and mypy
	$(BIN) -m ruff check .
	$(BIN) -m ruff format --check .
	$(BIN) -m mypy

fuzz: SEED ?= 0
fuzz: $(INSTALLED)  ## use it wrongly at random, damage stores, malform files; SEED=1 for others
	$(BIN) -m tests.fuzz --seed $(SEED)

format: $(INSTALLED)  ## rewrite the sources in the project's format
	$(BIN) -m ruff check --fix .
	$(BIN) -m ruff format .

bench: $(INSTALLED)  ## time the library
	$(BIN) benchmarks/run.py

lock: UPGRADE ?= --upgrade
lock: $(INSTALLED)  ## choose the newest versions that pyproject.toml allows
	@$(BIN) -c 'import uv' 2>/dev/null || $(PIP) uv
	$(BIN) -m uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	    --fork-strategy requires-python $(UPGRADE) --extra dev --custom-compile-command "make lock" \
	    --output-file requirements.lock pyproject.toml

clean:  ## remove what the other targets made, except the environment
	rm -rf build docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

.venv-oldest/%: JAX = jax==$(OLDEST_JAX) jaxlib==$(OLDEST_JAX)
.venv-newest/%: JAX = --upgrade jax jaxlib
.venv-oldest/.installed-$(VERSION) .venv-newest/.installed-$(VERSION): pyproject.toml
	@"$(PYTHON)" -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install -q -e ".[dev]" $(JAX)
	@touch $@

# The stamp is written last. The marker stands while pip works: where one is found, an earlier
# install was cut short, so that no package in the environment can be trusted to be whole.
$(INSTALLED): requirements.lock pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	    { echo "levymc needs Python 3.11 or newer: name one with make PYTHON=/path/to/python." >&2; exit 1; }
	@"$(PYTHON)" -m pip --version >/dev/null 2>&1 || \
	    { echo "levymc needs pip: $(PYTHON) has none." >&2; exit 1; }
	@test ! -e $(VENV)/pyvenv.cfg || ls -a $(VENV) | grep -q '^\.install' || \
	    { echo "$(VENV) was not made by make, which would write over it: name another, VENV=.venv-make." >&2; exit 1; }
	@echo "Installing the locked dependencies into $(VENV) (once) ..."
	@rm -f $@
	@test ! -e $(VENV)/pyvenv.cfg || \
	    test "$$($(BIN) -c $(PRINT_VERSION) 2>/dev/null)" = "$(VERSION)" || rm -rf $(VENV)
	@again=$$(test ! -e $(INTERRUPTED) || echo --ignore-installed); \
	    mkdir -p $(VENV); touch $(INTERRUPTED); \
	    "$(PYTHON)" -m venv --without-pip $(VENV) && $(PIP) $$again --require-hashes -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@rm -f $(INTERRUPTED)
	@touch $@
