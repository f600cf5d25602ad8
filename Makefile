# Everything is installed into .venv, at the versions in requirements.lock.
OLDEST := $(shell sed -n 's/^requires-python = ">=\(.*\)"/\1/p' pyproject.toml)
PYTHONS := $(OLDEST) 3.12 3.13 3.14
IS_NEW_ENOUGH = import sys; assert sys.version_info >= tuple(map(int, "$(OLDEST)".split(".")))
# Debian's own where it can make environments: it was built with profiles, and takes a quarter less of a processor than the
# plain builds of version managers.
PYTHON ?= $(shell /usr/bin/python3 -c 'import ensurepip; $(IS_NEW_ENOUGH)' 2>/dev/null \
	&& echo /usr/bin/python3 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
# Debian's python3 only suggests the package with which it makes environments.
HAS_VENV = $(PYTHON) -c 'import ensurepip' 2>/dev/null
APT = $$([ $$(id -u) = 0 ] || echo sudo -n) env DEBIAN_FRONTEND=noninteractive apt-get -y
GET_VENV = $(APT) install --no-install-recommends python3-venv
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps

# Half of what a worker does is waiting for clusters: eight keep two processors busy. Python keeps what it has compiled,
# whoever starts this.
WORKERS ?= 8
export PYTHONDONTWRITEBYTECODE =

QUICK := $(addprefix tests/,language catalog diagnosis plan wizard fit store cluster launch watch) \
	$(addprefix tests/,analysis suites evidence cluster_files house)
TIMES ?= 20
TESTS ?= tests/rig tests/ui tests/journey

# No rig and no demo cluster; of the screens, the whole way through the wizard, and all of a suite's.
PORTABLE := $(addprefix tests/,language catalog plan wizard diagnosis fit store cluster watch house) \
	$(addprefix tests/,analysis suites evidence cluster_files answers release) \
	tests/ui/wizard/test_wizard_journey.py tests/ui/suite \
	--ignore tests/watch/test_watch_monitor.py --ignore-glob '*_on_demo*'

.PHONY: demo test quick portable test-pythons steady campaign test-nemo test-upstream cluster lint types contracts bench fit \
	lock wheel clean

demo: $(VENV)/.ready
	@$(BIN)/llmb-tui demo

# The tests' own cluster is made of Debian's OpenSSH server and Slurm: they are installed where that is possible. Meanwhile
# a fresh clone's tests are compiled, which each of the processes would do by itself.
test: $(VENV)/.ready
	@[ -d tests/__pycache__ ] || $(BIN)/python -m pytest --collect-only -qq --ignore tests/nemo >/dev/null & \
		$(BIN)/python -m tests.rig packages; wait
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --ignore tests/nemo
	@echo "Not run here: tests/nemo, for which NeMo itself is installed (2 GB): make test-nemo"

# At each save, in less than a minute: a test is skipped as soon as it starts a program or a server, and no property is
# tested with random examples.
quick: $(VENV)/.ready
	$(BIN)/python -m pytest -n 2 --dist worksteal --quick -m "not hypothesis" $(QUICK)

# The tests that each supported Python must pass.
portable: $(VENV)/.ready
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PORTABLE)

# Each other supported Python that this machine has, in an environment of its own: the demo without a terminal, and `portable`.
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

# The tests with a rig or a screen, or those named by TESTS, again and again: none may fail even once.
steady: $(VENV)/.ready
	$(BIN)/python -m tests.rig packages
	$(BIN)/python -m tests.kit.repeat --times $(TIMES) --workers $(WORKERS) $(TESTS)

# Submissions and streams whose line is cut at random bytes and times, TIMES as many as in `make test`.
campaign: $(VENV)/.ready
	$(BIN)/python -m tests.rig packages
	LLMB_CAMPAIGN=$(TIMES) $(BIN)/python -m pytest -n 3 \
		tests/rig/submit/test_at_most_once.py tests/rig/submit/test_random_faults.py tests/rig/stream/test_stream_faults.py

# The recipes of the presets on real NeMo, on the CPU: the first time installs it into .nemo, beside .venv.
test-nemo: $(VENV)/.ready
	$(BIN)/python -m tests.rig packages
	$(BIN)/python -m tests.nemo.environment
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/nemo

# NVIDIA's real scripts with all their packages, one recipe after the other: network, 25 GB, an hour. RECIPES names some,
# and GIT a folder with mirrors `NAME.git`.
test-upstream: $(VENV)/.ready
	$(BIN)/python -m tests.upstream $(if $(GIT),--git $(GIT)) $(RECIPES)

# The same cluster by hand: says how to connect to it with plain ssh, and ends with ctrl+c.
cluster: $(VENV)/.ready
	$(BIN)/python -m tests.rig packages
	$(BIN)/python -m tests.rig up

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# For the oldest Python and the newest; what runs in containers, for theirs.
types: types-$(OLDEST) types-$(lastword $(PYTHONS)) types-container
types-container: $(VENV)/.ready
	$(BIN)/mypy --python-version 3.10 llmb_tui/remote/pretrain.py
types-%: $(VENV)/.ready
	$(BIN)/mypy --python-version $*

contracts: $(VENV)/.ready
	$(BIN)/lint-imports

# Beside the older version and other terminal programs, kept in .bench; an hour. Writes docs/speed.md: on a quiet machine.
bench: $(VENV)/.ready
	$(BIN)/python -m tests.rig packages
	$(BIN)/python -m bench

# Fits the estimate to the published rows again, and writes its coefficients.
fit: $(VENV)/.ready
	$(BIN)/python -m llmb_tui.fit

# uv takes a quarter of pip's time. It knows none of pip's settings: where they lead to the packages, pip does it.
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

# For maintainers: pins what is asked for, for all platforms and each supported Python, without requirements-excluded.txt.
# LOCK=--upgrade takes newer versions.
lock: $(VENV)/.ready
	$(BIN)/uv pip compile $(LOCK) --quiet --universal --python-version $(OLDEST) --extra dev --no-emit-index-url --no-header \
		--no-annotate --generate-hashes --excludes requirements-excluded.txt pyproject.toml -o requirements.lock

# The file of a release, in dist/.
wheel: $(VENV)/.ready
	$(BIN)/hatchling build --target wheel

clean:
	rm -rf dist $(VENV) $(PYTHONS:%=.venv-%) .bench .nemo .upstream .wheels
