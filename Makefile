# Every command that the README names. Only Python 3.11 and make are needed.
PYTHON ?= python3.11
BIN := .venv/bin

.PHONY: demo test lint types clean

demo: .venv/demo.stamp
	$(BIN)/headsmith demo

test: .venv/test.stamp
	$(BIN)/pytest -n 2

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# A type check reads the installed package, not the folders: their import names differ.
types: .venv/dev.stamp
	rm -rf build/types && mkdir -p build
	$(BIN)/pip install -q --no-deps --target build/types .
	cd build/types && ../../$(BIN)/mypy --config-file ../../pyproject.toml -p headsmith

.venv/%.stamp: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install -q -e '.[$*]'
	touch $@

clean:
	rm -rf .venv build dist *.egg-info
