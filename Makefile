# Each target sets up .venv by itself, on a machine that has only Python 3.11 or newer and make.

BIN := .venv/bin
READY := .venv/.ready
# Tests of one file stay together: they share compiled programs.
PARALLEL := -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: help run test test-all lint bench soak format lock clean

help:
	@echo "make run       set up, then train a connect-four network from nothing"
	@echo "make test      set up, then the tests (a few minutes the first time)"
	@echo "make test-all  the tests and the long checks"
	@echo "make lint      ruff and pyright"
	@echo "make bench     how fast the games are here, next to pgx"
	@echo "make soak      an hour of the daemon being killed while data comes (MINUTES=3 for less)"
	@echo "make format    let ruff format the code"
	@echo "make lock      choose the newest versions of all dependencies again"
	@echo "make clean     remove .venv"

run: $(READY)
	$(BIN)/tengen run connect_four

test: $(READY)
	@echo "== running the tests (without the long ones: make test-all) =="
	$(BIN)/python -m pytest -q -m "not slow" $(PARALLEL)

test-all: $(READY)
	@echo "== running all tests, the long ones too =="
	$(BIN)/python -m pytest -q $(PARALLEL)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

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
