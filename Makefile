# The front door. What needs more than a few lines is a script in scripts/.
SHELL := /bin/bash
export CARGO_TERM_COLOR ?= auto

.PHONY: help demo ui test kube-up kube-down test-kube lint advisories bench soak dist generate clean

help: ## Show this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: ## Bring the whole system up and run a first action (ONCE=1: then stop)
	@scripts/demo.sh

ui: ## Build the dashboard, which `ferry` takes into itself
	@scripts/ui.sh

test: ## Run every test; installs what it needs
	@scripts/test.sh

kube-up: ## Start a Kubernetes cluster on this machine, or say that one is up
	@scripts/kube.sh up

kube-down: ## Stop it and remove what it left on the machine
	@scripts/kube.sh down

test-kube: ## Run the tests that need a Kubernetes cluster; starts one if none is up
	@scripts/test-kube.sh

lint: ## Check the format, the dependencies, and clippy with warnings denied
	cargo fmt --all --check
	scripts/deny.py
	cargo clippy --workspace --all-targets --all-features -- -D warnings

advisories: ## Look for known vulnerabilities in the dependencies (needs the network)
	@scripts/advisories.sh

bench: ## Measure, print a table, write target/bench.json
	@scripts/bench.sh

soak: ## Longer proofs, run by hand (PART=…)
	@scripts/soak.sh

dist: ## Stripped dist/ferry and dist/ferry-runner (static)
	@scripts/dist.sh

generate: ## Write the generated files anew: OpenAPI documents, CLI reference, schemas
	UPDATE=1 cargo test -p server --test it generated
	UPDATE=1 cargo test -p ferry --bins -p model generated
	UPDATE=1 cargo test -p config generated

clean: ## Remove what was built
	cargo clean
	rm -rf dist .ferry
