# Every target works on a fresh clone with python3, make and the package index; a second run reuses .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := $(VENV)/.demo
INSTALLED := $(VENV)/.installed
export PYTHONDONTWRITEBYTECODE =  # what is compiled is kept, or each of many processes would compile all of it again

.PHONY: venv demo test lint types layers kernels check-engines reproduce study figures \
        prove lemmas reservoir-cases bar-cases reservoir-comparison audit-power \
        board-data docs error-table test-long test-serve-long test-kernels-long test-gpu log-data \
        bench bench-gpu wheel clean

# Byte code is written on first use: compiling all of it beforehand takes longer than the rest of an installation.
PIP := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check

venv: $(INSTALLED)

$(DEMO): pyproject.toml constraints.txt
	@echo "Making a new environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "Installing cloneproof and the packages it needs, such as NumPy and SciPy"
	@$(PIP) --editable .
	@touch $@

$(INSTALLED): $(DEMO)
	@echo "Installing everything for development: the service, logs, boards, tests (some two minutes)"
	@$(PIP) --editable ".[dev]"
	@touch $@

demo: $(DEMO)
	@$(BIN)/python examples/creators.py
	@mkdir -p build
	@$(BIN)/cloneproof play build/demo.html

# Three jobs at a time on two cores, as tests of the service wait for clocks, files and processes: they begin first,
# then the longest, and the shortest last, so that none is left alone at the end. A file is read by one process only.
TEST_PARTS := serve advice others engines audits data mechanisms studies doctests
TESTS_OF_serve := tests/serve tests/cli
TESTS_OF_engines := tests/evaluation tests/runs
TESTS_OF_advice := tests/advice
TESTS_OF_mechanisms := tests/mechanisms
TESTS_OF_data := tests/boards tests/logs tests/sweeps
TESTS_OF_audits := tests/audits
TESTS_OF_studies := tests/paper tests/studies tests/docs tests/laws proof/lemmas
TESTS_OF_doctests := --doctest-modules --doctest-glob='*.md' src docs README.md CONTRIBUTING.md
TESTS_OF_others := $(filter-out $(foreach part, $(TEST_PARTS), $(TESTS_OF_$(part))) tests/support tests/errors, \
                     $(wildcard tests/test_*.py) $(patsubst %/,%, $(filter-out tests/__pycache__/, $(wildcard tests/*/))))

test: $(INSTALLED)
	$(MAKE) --jobs 3 --keep-going kernels types $(TEST_PARTS:%=test-part-%) docs lint layers

test-part-%: kernels
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest $(TESTS_OF_$*)

test-long: $(INSTALLED)
	CLONEPROOF_LONG=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 tests proof/lemmas

test-serve-long: $(INSTALLED)
	CLONEPROOF_KILLS=200 CLONEPROOF_EVENTS=1000000 CLONEPROOF_POWER_LOSSES=400 CLONEPROOF_STATEFUL_EXAMPLES=300 \
	CLONEPROOF_RESTARTS=20 	CLONEPROOF_SCHEMA_EXAMPLES=300 $(BIN)/python -m pytest -s tests/serve

test-kernels-long: $(INSTALLED)
	CLONEPROOF_CI=1 CLONEPROOF_GPU_JOBS=10000 $(BIN)/python -m pytest tests/runs/gpu/test_kernels.py -k c++

test-gpu: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[gpu]"
	$(BIN)/python -c "from cloneproof.runs.gpu.launch import require_card; require_card()"
	CLONEPROOF_GPU_JOBS=10000 $(BIN)/python -m pytest tests/runs/gpu

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

layers: $(INSTALLED)
	$(BIN)/lint-imports

docs: $(INSTALLED)
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --doctree-dir build/doctrees docs build/docs

# Built when a source of them has changed, once for all processes of the tests.
kernels: $(INSTALLED)
	$(BIN)/python -c "from cloneproof.runs.native.library import library; library()"

# One wheel for Python 3.11 and later, tried in a new environment without a compiler on the path.
wheel: $(INSTALLED)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(BIN)/python tests/support/try_wheel.py dist

# Every bad call of tests/errors/*.txt with the sentence that it gets today; a review reads the difference.
error-table: $(INSTALLED)
	PYTHONPATH=tests $(BIN)/python tests/support/error_table.py

check-engines: $(INSTALLED)
	CLONEPROOF_LONG=1 CLONEPROOF_EXAMPLES=400 $(BIN)/python -m pytest -n 2 tests/evaluation/test_engines_agree.py

reproduce: $(INSTALLED)
	$(BIN)/cloneproof reproduce --out build/reproduce

study: $(INSTALLED)
	$(BIN)/python studies/which_mechanism.py build/study
	$(BIN)/python studies/click_rates.py build/study

# The Open Bandit sample and MovieLens-100k, as the wheels of two packages bring them; these are not installed.
log-data: $(INSTALLED)
	mkdir -p build/log-data/wheels
	$(BIN)/python -m pip download --quiet --no-deps --only-binary :all: --dest build/log-data/wheels obp==0.4.1 recbole
	$(BIN)/python examples/log/real_data.py build/log-data

bench: $(INSTALLED)
	$(BIN)/python benchmarks/session.py
	$(BIN)/python benchmarks/exact.py
	$(BIN)/python benchmarks/monte_carlo.py
	$(BIN)/python benchmarks/serve.py
	$(BIN)/python benchmarks/serve.py --postgres
	$(BIN)/python benchmarks/serve_floods.py
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/cost.py
	$(BIN)/python benchmarks/log.py

bench-gpu: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[gpu]"
	$(BIN)/python benchmarks/gpu.py

figures: $(INSTALLED)
	$(BIN)/python studies/reservoir_figures.py docs/textbook/figures
	$(BIN)/python studies/bar_figures.py docs/textbook/figures

audit-power: $(INSTALLED)
	$(BIN)/python studies/audit_power.py build/audit-power

reservoir-comparison: $(INSTALLED)
	$(BIN)/python studies/reservoir_comparison.py

# Every lemma of the textbook on random cases, in fractions; `make test` runs a smaller part of them.
lemmas: $(INSTALLED)
	CLONEPROOF_LONG=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 proof/lemmas

# The lemmas; the machine-checked theorem (proof/README.md), and the loop it is about against the session.
prove: lemmas
	@proof/prove.sh
	@$(MAKE) --no-print-directory venv
	CLONEPROOF_CI=1 CLONEPROOF_BRIDGE_CASES=2000 $(BIN)/python -m pytest tests/proof

reservoir-cases: $(INSTALLED)
	$(BIN)/python studies/reservoir_cases.py

bar-cases: $(INSTALLED)
	$(BIN)/python studies/bar_cases.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Win rates of AlpacaEval, as the wheel of a package brings them; it is not installed.
board-data: $(INSTALLED)
	mkdir -p build/board-data
	$(BIN)/python -m pip download --quiet --no-deps --only-binary :all: --dest build/board-data alpaca-eval==0.6.6
	$(BIN)/python -m zipfile -e build/board-data/alpaca_eval-0.6.6-py3-none-any.whl build/board-data
	-$(BIN)/cloneproof board build/board-data/alpaca_eval/leaderboards/data_AlpacaEval_2/weighted_alpaca_eval_gpt4_turbo_leaderboard.csv --owners first-word --html build/board-data/alpaca.html
