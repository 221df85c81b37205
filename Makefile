# Every target sets up .venv first if it is missing or out of date. `make help` lists them.
PORT ?= 8000
PYTHON := .venv/bin/python

# Two more than there are processors: tests wait for Postgres, for a browser and for each other's boxes.
WORKERS = $(shell expr $$(nproc) + 2)

.DEFAULT_GOAL := help
.PHONY: help up host test check format bench bench-detection bench-pages gpu-check clean environment

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: environment ## set up and start everything; PORT=8000 chooses the port, Ctrl-C ends it
	@PORT=$(PORT) exec $(PYTHON) manage.py up

host: COMPONENTS := host,torch,emulator,service
host: environment ## measure for a site elsewhere: SITE=https://... CODE=... from its page Machines, once
	@exec $(PYTHON) -m workers.host run $(if $(SITE),--site $(SITE)) $(if $(CODE),--code $(CODE)) $(if $(NAME),--name $(NAME))

test: environment ## set up and run the tests; TESTS=tests/services chooses some
	@.ci/chromium
	@exec $(PYTHON) -m pytest $(or $(TESTS),--numprocesses $(WORKERS) --maxprocesses 4 --dist worksteal)

check: environment ## lint, format, types
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy dashboard workers trainers/harness/src

format: environment ## put the code into its standard format
	@$(PYTHON) -m ruff check --fix .
	@$(PYTHON) -m ruff format .

bench: environment ## measure what measuring costs; BENCH=marks chooses parts, AA=10 the A/A runs
	@exec $(PYTHON) -m bench $(BENCH) $(if $(AA),--runs $(AA))

bench-detection: environment ## our detectors beside PEERS=file.py (run by PEERS_PYTHON) on DATA=folder
	@exec $(or $(PEERS_PYTHON),$(PYTHON)) -m bench.detection $(if $(DATA),--data $(DATA)) $(if $(PEERS),--peers $(PEERS)) \
		$(if $(ONLY),--only $(ONLY))

bench-pages: environment ## every page's server time on a site of 2 million points; JSON=path, CURVE=1, WRITE=1
	@exec $(PYTHON) -m bench.pages $(if $(JSON),--json $(JSON)) $(if $(CURVE),--curve) $(if $(WRITE),--write) $(if $(SCALE),--scale $(SCALE))

gpu-check: environment ## try the harness and all benchmarks on this host, its GPU above all; MINUTES=8
	@exec $(PYTHON) -m paceline doctor --report gpu-check.json $(if $(MINUTES),--minutes $(MINUTES))

clean: ## remove .venv and caches; measurements and the database stay in .paceline
	@rm -rf .venv build *.egg-info trainers/harness/src/*.egg-info .mypy_cache .ruff_cache .pytest_cache
	@find . -name __pycache__ -type d -not -path './.paceline/*' -prune -exec rm -rf {} +

# The system's Python first: an environment made by a private one can't be used by other accounts.
environment:
	@for python in /usr/bin/python3 python3.13 python3.12 python3.11 python3; do \
		"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
			exec "$$python" -I dashboard/services/virtual_environment.py $(COMPONENTS); \
	done; \
	echo "Paceline needs Python 3.11 or newer; on Debian: apt install python3 python3-venv" >&2; exit 1
	@.ci/bubblewrap
