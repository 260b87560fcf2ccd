# Every target works on a fresh clone with only Python 3.11+ and make.
PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin
# The tests of a file stay on one worker, so its module-scoped fixtures are built once. Files start in the order in
# which they are collected: tests/claims, contracts and e2e, which hold the longest ones, come first.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

KILLS ?= 20

.PHONY: demo test faults lint check wheel-demo format pictures docs docs-tables docs-site bench reproduce clean

demo: .venv/ready
	$(BIN)/roadworthy demo

test: .venv/ready  # all but the slow tests
	$(PYTEST) -m "not slow"

faults: .venv/ready  # bad inputs, full disks, dead workers, and KILLS random kills: make faults KILLS=200
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile tests/faults -m "not slow"
	$(BIN)/python tests/faults/kills.py --kills $(KILLS)

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

FAST ?=
check: lint  # all tests; FAST=1 leaves out the slow ones, as CI does
	$(PYTEST) $(if $(FAST),-m "not slow")

# Install the wheel into an empty environment, without extras, and run the demo outside of the source tree.
wheel-demo:
	set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; unset PYTHONPATH; \
	$(PYTHON) -m venv "$$dir/env"; \
	"$$dir/env/bin/python" -m pip wheel --quiet --no-deps -w "$$dir" .; \
	"$$dir/env/bin/python" -m pip install --quiet -c constraints.txt "$$dir"/roadworthy-*.whl; \
	cd "$$dir"; env/bin/roadworthy demo --images 24 --out demo.html; test -s demo.html

format: .venv/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/bridges  # the tables of docs/performance.md
	for part in imputation comparison maps; do $(BIN)/python bench/ratios.py $$part || exit 1; done
	$(BIN)/python bench/report.py

SIZE ?= full
reproduce: .venv/ready  # takes hours and resumes if interrupted; make reproduce SIZE=tiny: every step, in minutes
	OMP_NUM_THREADS=1 $(BIN)/python -m reproduction.run --size $(SIZE)

pictures: .venv/ready  # of README and docs, the sample report and its screenshots, from one run of the demo
	$(BIN)/python docs/pictures/build.py

docs: docs-tables docs-site  # into docs/_build/html

# What is written from code: the page of the command, the tables of other libraries and of plans, printed results.
docs-tables: .venv/ready
	$(BIN)/typer roadworthy.cli utils docs --name roadworthy --title "The command roadworthy" --output docs/cli.md
	$(BIN)/python tests/bridges/table.py
	$(BIN)/python docs/plan_keys.py
	OMP_NUM_THREADS=1 $(BIN)/python tests/printed.py

# Runs the gallery. Every warning is an error, and nothing is fetched.
docs-site: .venv/docs
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs docs/_build/html

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -c "from roadworthy.imputers.solvers.multigrid import compile_now; compile_now(32, 32); compile_now(224, 224)"
	touch $@

# Other libraries for the tests of bridges; without them those tests are skipped. A torchvision that was built for CUDA
# needs SHIM, a module to import first, beside a torch for the CPU.
SHIM ?=
.venv/bridges: .venv/ready .ci/no-deps.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bridges]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r .ci/no-deps.txt
	if [ -n "$(SHIM)" ]; then site=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	  cp "$(SHIM)" "$$site/_torchvision_shim.py"; echo 'import _torchvision_shim' > "$$site/_torchvision_shim.pth"; fi
	touch $@

.venv/docs: .venv/bridges  # the gallery runs other libraries
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,docs]'
	touch $@

clean:
	rm -rf .venv docs/_build docs/gallery .mypy_cache .ruff_cache .pytest_cache
