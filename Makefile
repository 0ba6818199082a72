# Each target sets up .venv by itself, on a machine that has only Python 3.11 or newer and make.

# Without it, `make setup` would copy setup.sh to a file called setup.
.SUFFIXES:

BIN := .venv/bin
READY := .venv/.ready
# Modules stay compiled between processes, whatever the environment says: the tests start many.
export PYTHONDONTWRITEBYTECODE :=
# Tests of one file stay together: they share compiled programs. Some wait for processes, so three keep two cores busy.
PARALLEL := -n 3 --dist loadfile --no-loadscope-reorder
# Which tests: TESTS=tests/data, or any other arguments of pytest. Without it, all.
TESTS :=

.PHONY: help run test test-all test-busy test-gpu lint docs bench soak format lock clean

help:
	@echo "make run       set up, then train a connect-four network from nothing"
	@echo "make test      set up, then the tests (about eight minutes on two idle cores; TESTS=tests/data for some of them)"
	@echo "make test-all  the tests and the long checks (an hour or more)"
	@echo "make test-busy the tests five times on a machine that is made busy (TIMES=1 for once)"
	@echo "make test-gpu  the tests that need an NVIDIA GPU (a few minutes)"
	@echo "make lint      ruff and pyright"
	@echo "make docs      the documentation as a site with the Python API, in site/"
	@echo "make bench     how fast the games are here, next to pgx"
	@echo "make soak      an hour of the daemon being killed while data comes (MINUTES=3 for less)"
	@echo "make format    let ruff format the code"
	@echo "make lock      choose the newest versions of all dependencies again"
	@echo "make clean     remove .venv"

run: $(READY)
	$(BIN)/tengen run connect_four

test: $(READY)
	@echo "== running the tests (without the long ones: make test-all) =="
	$(BIN)/python -m pytest -q -m "not slow" $(PARALLEL) $(TESTS)

test-all: $(READY)
	@echo "== running all tests, the long ones too =="
	$(BIN)/python -m pytest -q $(PARALLEL) $(TESTS)

# Tests must not depend on how fast the machine is: four loops compete with them for the cores. They end with the shell
# that started them, however that ends. The first run that fails is the last.
TIMES := 5
test-busy: $(READY)
	@echo "== running the tests $(TIMES) times beside four busy loops =="
	@loops=; for loop in 1 2 3 4; do (while kill -0 $$$$ 2>/dev/null; do :; done) & loops="$$loops $$!"; done; \
	trap 'kill $$loops 2>/dev/null' EXIT; trap 'exit 130' INT TERM HUP; \
	for time in $$(seq $(TIMES)); do \
		echo "== run $$time of $(TIMES) =="; \
		$(BIN)/python -m pytest -q -m "not slow" $(PARALLEL) $(TESTS) || exit 1; \
	done

# Compiling takes most of the time, so several processes share the GPU, and take tests from each other at the end;
# tests/conftest.py lets none of them take its memory at the start. GPU_JOBS=1 for one after the other.
# Without this Makefile, where Tengen and pytest can be imported (PYTHONPATH=src): python -m pytest -q -m "gpu and not slow"
# (with -n 6 --dist worksteal if pytest-xdist is there, and --continue-on-collection-errors if packages are missing that
# only other tests need). The tests are skipped where JAX finds no GPU. `-m gpu` runs the long ones too.
GPU_JOBS := 6
test-gpu: $(READY)
	@echo "== running the tests that need a GPU =="
	$(BIN)/python -m pytest -q -m "gpu and not slow" -n $(GPU_JOBS) --dist worksteal --durations 10 $(TESTS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# mkdocs and its plugins are not installed for anything else.
docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

.venv/.docs: $(READY)
	@echo "== installing what builds the site =="
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[docs]"
	@touch $@

bench: $(READY)
	$(BIN)/tengen bench games

MINUTES := 60
soak: $(READY)
	$(BIN)/python benchmarks/soak.py --minutes $(MINUTES)

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# A checkout that was moved is set up again: the scripts in .venv hold the path where it was made.
MOVED := $(shell [ "$$(cat .venv/.made-in 2>/dev/null)" = "$$PWD" ] || echo moved)

$(READY): pyproject.toml constraints.txt setup.sh $(MOVED)
	@PYTHON="$(PYTHON)" sh ./setup.sh
	@touch $@

.PHONY: moved
moved:

lock: $(READY)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --quiet --upgrade --python-version 3.11 --all-extras --no-header --no-annotate \
		-o constraints.txt pyproject.toml

clean:
	rm -rf .venv
