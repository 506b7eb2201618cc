# Every command that the README names. Only Python 3.11 and make are needed.
PYTHON ?= python3.11
BIN := .venv/bin

.PHONY: demo test lint types wheel clean

demo: .venv/demo.stamp
	$(BIN)/headsmith demo

test: .venv/test.stamp
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The type check reads an installed package: the folders' import names are not their paths.
types: .venv/dev.stamp
	rm -rf build && $(BIN)/pip install -q --no-deps --target build/types .
	cd build/types && ../../$(BIN)/mypy --config-file ../../pyproject.toml -p headsmith

# The wheel, in an environment of its own, away from the checkout.
wheel: .venv/dev.stamp
	rm -rf dist build && $(BIN)/python -m build -q --wheel
	clean=$$(mktemp -d) && trap 'rm -rf "$$clean"' EXIT && $(PYTHON) -m venv $$clean/venv \
	&& $$clean/venv/bin/pip install -q "$$(ls $(CURDIR)/dist/*.whl)[demo]" \
	&& cd $$clean && venv/bin/headsmith doctor && venv/bin/headsmith demo --quick

.venv/%.stamp: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install -q -e '.[$*]'
	touch $@

clean:
	rm -rf .venv build dist *.egg-info
