# Every command that the README names. Only Python 3.11 and make are needed.
PYTHON ?= python3.11
BIN := .venv/bin
# Where `make wheel` installs the wheel; emptied first.
ENV ?= build/env
CLIENTS := tests/clients/javascript
OPENVINO := .venv/openvino
# Bytecode is written, for the many processes that tests start.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test fuzz clients lint types wheel clean

demo: .venv/demo.stamp
	$(BIN)/headsmith demo

test: .venv/test.stamp $(OPENVINO)
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

# Thousands of damaged files a reader, where `make test` reads some hundred; `make fuzz FUZZ=images` for some readers.
fuzz: export FUZZ_MUTATIONS ?= 5000
fuzz: .venv/test.stamp
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 tests/fuzz -k "$(FUZZ)"

# OpenVINO's onnxruntime, for the test of its provider; it has the import name of the others, so it lies in a folder of
# its own. Where there is no wheel of it that test is skipped, but not in continuous integration.
$(OPENVINO): .venv/test.stamp
	-$(BIN)/pip install -q --no-deps --no-compile --upgrade --target $@ onnxruntime-openvino==1.24.1 && touch $@

# The npm packages that some tests run; without them those are skipped.
clients: $(CLIENTS)/node_modules/.package-lock.json

$(CLIENTS)/node_modules/.package-lock.json: $(CLIENTS)/package.json
	cd $(CLIENTS) && npm install
	touch $@

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The type check reads an installed package: the folders' import names are not their paths.
types: .venv/dev.stamp
	rm -rf build && $(BIN)/pip install -q --no-deps --target build/types .
	cd build/types && ../../$(BIN)/mypy --config-file ../../pyproject.toml -p headsmith

# The wheel, in an environment that holds nothing else, away from the checkout.
wheel:
	rm -rf dist build && $(PYTHON) -m venv --clear $(ENV)
	$(ENV)/bin/pip wheel -q --no-deps --wheel-dir dist .
	$(ENV)/bin/pip install -q --no-compile "$$(ls dist/*.whl)[demo]"
	bin=$$(realpath $(ENV)/bin) && away=$$(mktemp -d) && trap 'rm -rf "$$away"' EXIT \
	&& cd $$away && $$bin/headsmith doctor && $$bin/headsmith demo --quick

.venv/%.stamp: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install -q --no-compile -e '.[$*]'
	touch $@

clean:
	rm -rf .venv build dist *.egg-info $(CLIENTS)/node_modules
