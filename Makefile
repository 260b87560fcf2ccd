# Every target works on a fresh clone with only Python 3.11+ and make.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check format docs bench reproduce clean

demo: .venv/ready
	$(BIN)/roadworthy demo

test: .venv/ready
	$(BIN)/python -m pytest

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

format: .venv/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/ready
	$(BIN)/python bench/report.py

reproduce: .venv/ready  # hours; stop it at any moment, and run it again
	$(BIN)/python -m reproduction.run

docs: .venv/ready
	$(BIN)/typer roadworthy.cli utils docs --name roadworthy --title "The command roadworthy" --output docs/cli.md

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -c "from roadworthy.imputers.multigrid import compile_now; compile_now()"
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
