# Every target stands on `setup`, so `make demo` and `make test` are complete
# commands on a machine that has only Python >= 3.11 and the package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One stamp per interpreter: another PYTHON builds another environment.
STAMP := $(VENV)/.installed$(subst /,-,$(PYTHON))
WORKERS ?= 2
COMMA := ,
# Checks every annotated shape and type at run time, for a third of the time of a test.
CHECKED := --jaxtyping-packages=jaxrig$(COMMA)jaxarc$(COMMA)jaxtrace$(COMMA)acbo$(COMMA)typecheck.checker
# Each worker begins with a half of the files, in order: one file in a hundred is compiled
# by both workers, not one in fourteen.
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
PIP = if command -v uv >/dev/null 2>&1; \
  then uv pip install --quiet --python $(BIN)/python -e ".[$(1)]"; \
  else $(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$(1)]"; fi

.PHONY: setup demo test slow lint check bench docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@"$(PYTHON)" -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"jaxrig needs Python 3.11 or newer, {sys.executable} is {v[0]}.{v[1]}: make PYTHON=python3.12 ...")'
	@rm -f $(VENV)/.installed*
	@if command -v uv >/dev/null 2>&1; \
	  then uv venv --quiet --allow-existing --python "$(PYTHON)" $(VENV); \
	  else "$(PYTHON)" -m venv $(VENV); fi
	@echo "installing into $(VENV) (about a minute the first time)"
	@$(call PIP,arc$(COMMA)trace$(COMMA)causal$(COMMA)viz$(COMMA)hydra$(COMMA)dev)
	@touch $@

demo: setup
	$(BIN)/jaxrig demo --out out

# What is equal bit for bit is so with the compiler's usual settings: see tests/conftest.py.
test: setup
	$(PYTEST) -m "not slow and not bitwise"
	$(PYTEST) -m "bitwise and not slow" $$(grep -rl mark.bitwise tests)

slow: setup
	$(BIN)/pyright tests
	$(PYTEST) $(CHECKED) -m slow

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright src benchmarks examples

check: setup
	$(MAKE) -j2 lint test

bench: setup
	$(BIN)/jaxrig bench --out out/bench.json

docs: setup
	@$(call PIP,docs)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) .cache out site build dist
