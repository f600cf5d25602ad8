# Everything is installed into .venv, at the versions in requirements.lock.
OLDEST := $(shell sed -n 's/^requires-python = ">=\(.*\)"/\1/p' pyproject.toml)
PYTHONS := $(OLDEST) 3.12 3.13 3.14
IS_NEW_ENOUGH = import sys; assert sys.version_info >= tuple(map(int, "$(OLDEST)".split(".")))
# Debian's Python, if it can make environments: it is built with profile-guided optimization and uses a quarter less CPU time
# than the plain builds of version managers.
PYTHON ?= $(shell /usr/bin/python3 -c 'import ensurepip; $(IS_NEW_ENOUGH)' 2>/dev/null \
	&& echo /usr/bin/python3 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
# Debian's python3 does not depend on the package that makes environments, so it may be missing.
HAS_VENV = $(PYTHON) -c 'import ensurepip' 2>/dev/null
APT = $$([ $$(id -u) = 0 ] || echo sudo -n) env DEBIAN_FRONTEND=noninteractive apt-get -y
GET_VENV = $(APT) install --no-install-recommends python3-venv
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps

# A worker waits for clusters half of the time: eight workers keep two cores busy.
WORKERS ?= 8
# Python stores its compiled files, even if the caller has turned that off.
export PYTHONDONTWRITEBYTECODE =

QUICK := $(addprefix tests/,language catalog diagnosis plan wizard fit store cluster launch watch) \
	$(addprefix tests/,analysis suites evidence cluster_files house)
TIMES ?= 20
TESTS ?= tests/rig tests/ui tests/journey

# Tests without a rig and without a demo cluster. Of the UI tests, only the wizard journey and the suite tests.
PORTABLE := $(addprefix tests/,language catalog plan wizard diagnosis fit store cluster watch house) \
	$(addprefix tests/,analysis suites evidence cluster_files answers release) \
	tests/ui/wizard/test_wizard_journey.py tests/ui/suite \
	--ignore tests/watch/test_watch_monitor.py --ignore-glob '*_on_demo*'

.PHONY: demo test quick portable test-pythons steady campaign test-nemo test-upstream cluster lint types contracts bench fit \
	lock wheel clean

demo: $(VENV)/.ready
	@$(BIN)/llmb-tui demo

# Installs Debian's OpenSSH server and Slurm for the test rig, if possible. In a fresh clone, compiles the tests at the same
# time, so that each worker need not do it.
test: $(VENV)/.ready
	@[ -d tests/__pycache__ ] || $(BIN)/python -m pytest --collect-only -qq --ignore tests/nemo >/dev/null & \
		$(BIN)/python -m tests.rig packages; wait
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --ignore tests/nemo
	@echo "Not run: tests/nemo, which installs NeMo (2 GB): make test-nemo"

# The tests for each save of a file; they take less than a minute. A test that starts a program or a server is skipped, and
# so is every test with random examples.
quick: $(VENV)/.ready
	$(BIN)/python -m pytest -n 2 --dist worksteal --quick -m "not hypothesis" $(QUICK)

# The tests that each supported Python must pass.
portable: $(VENV)/.ready
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PORTABLE)

# Runs the demo without a terminal, and `portable`, on each other supported Python of this machine, in separate environments.
# A shim of pyenv starts the Python that PYENV_VERSION selects, and fails if pyenv has not installed it.
test-pythons: $(VENV)/.ready
	@own=$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); missing=; failed=; \
	for version in $(PYTHONS); do \
		[ $$version != $$own ] || continue; \
		python=$$(PYENV_VERSION=$$version python$$version -c 'import ensurepip, sys; print(sys.executable)' 2>/dev/null) || \
			{ missing="$$missing $$version"; continue; }; \
		echo "Python $$version: $$python"; \
		$(MAKE) --no-print-directory --jobs 2 --output-sync VENV=.venv-$$version PYTHON=$$python demo portable </dev/null || \
			failed="$$failed $$version"; \
	done; \
	[ -z "$$missing" ] || echo "Not run, because this machine cannot make an environment with it: Python$$missing"; \
	[ -z "$$failed" ] || { echo "Failed, see above: Python$$failed" >&2; exit 1; }

# Repeats the tests with a rig or a screen, or the tests that TESTS names. Fails if any test fails even once.
steady: $(VENV)/.ready
	$(BIN)/python -m tests.rig packages
	$(BIN)/python -m tests.kit.repeat --times $(TIMES) --workers $(WORKERS) $(TESTS)

# Breaks connections of submissions and streams at random bytes and times, TIMES times as often as `make test`.
campaign: $(VENV)/.ready
	$(BIN)/python -m tests.rig packages
	LLMB_CAMPAIGN=$(TIMES) $(BIN)/python -m pytest -n 3 \
		tests/rig/submit/test_at_most_once.py tests/rig/submit/test_random_faults.py tests/rig/stream/test_stream_faults.py

# Runs the recipes of the presets with real NeMo, on the CPU. The first time, installs NeMo into .nemo.
test-nemo: $(VENV)/.ready
	$(BIN)/python -m tests.rig packages
	$(BIN)/python -m tests.nemo.environment
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/nemo

# Runs NVIDIA's real scripts with all their packages, recipe by recipe. Needs network access, 25 GB and an hour. RECIPES
# selects recipes; GIT is a directory with mirrors `NAME.git`.
test-upstream: $(VENV)/.ready
	$(BIN)/python -m tests.upstream $(if $(GIT),--git $(GIT)) $(RECIPES)

# Starts the test rig, prints how to connect to it with ssh, and runs until ctrl+c.
cluster: $(VENV)/.ready
	$(BIN)/python -m tests.rig packages
	$(BIN)/python -m tests.rig up

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Checks for the oldest and the newest Python, and the script that runs in containers for their Python.
types: types-$(OLDEST) types-$(lastword $(PYTHONS)) types-container
types-container: $(VENV)/.ready
	$(BIN)/mypy --python-version 3.10 llmb_tui/remote/pretrain.py
types-%: $(VENV)/.ready
	$(BIN)/mypy --python-version $*

contracts: $(VENV)/.ready
	$(BIN)/lint-imports

# Compares with an older version and other terminal programs, which are stored in .bench, and writes docs/speed.md. Takes an
# hour on a machine without other load.
bench: $(VENV)/.ready
	$(BIN)/python -m tests.rig packages
	$(BIN)/python -m bench

# Fits the step-time model to the published rows and writes its coefficients.
fit: $(VENV)/.ready
	$(BIN)/python -m llmb_tui.fit

# uv needs a quarter of pip's time, but ignores pip's settings. If uv fails, for example because only pip is configured for a
# mirror, pip installs the packages.
$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c '$(IS_NEW_ENOUGH)' 2>/dev/null || \
		{ echo "$(PYTHON) is older than Python $(OLDEST), or does not start: make PYTHON=ANOTHER" >&2; exit 1; }
	@$(HAS_VENV) || { [ "$$(command -v $(PYTHON))" -ef /usr/bin/python3 ] && \
		{ $(GET_VENV) || { $(APT) update && $(GET_VENV); }; } >/dev/null 2>&1 && $(HAS_VENV); } || \
		{ echo "$(PYTHON) cannot make environments: apt install python3-venv, or make PYTHON=ANOTHER" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > $(VENV)/uv.lock
	$(PIP) --requirement $(VENV)/uv.lock
	$(BIN)/uv pip install --python $(BIN)/python --quiet --compile-bytecode --no-deps --requirement requirements.lock || \
		$(PIP) --requirement requirements.lock
	$(PIP) --no-build-isolation --editable .
	@touch $@

# For maintainers: locks the dependencies for all platforms and supported Pythons, without requirements-excluded.txt.
# LOCK=--upgrade selects newer versions.
lock: $(VENV)/.ready
	$(BIN)/uv pip compile $(LOCK) --quiet --universal --python-version $(OLDEST) --extra dev --no-emit-index-url --no-header \
		--no-annotate --generate-hashes --excludes requirements-excluded.txt pyproject.toml -o requirements.lock

# Builds the wheel of a release in dist/.
wheel: $(VENV)/.ready
	$(BIN)/hatchling build --target wheel

clean:
	rm -rf dist $(VENV) $(PYTHONS:%=.venv-%) .bench .nemo .upstream .wheels
