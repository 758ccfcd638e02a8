# offlab: everything a newcomer and CI need. `make help` lists the targets.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO      ?= go
BIN     := bin/offlab
TOOLS   := $(GO) tool -modfile=tools/go.mod
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/offlab/offlab/internal/cli.version=$(VERSION)

export CGO_ENABLED := 0

.PHONY: help build agents run deps lint test check clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

build: ## build bin/offlab, one static binary
	@mkdir -p bin
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/offlab

agents: ## build offlab for other machines beside bin/offlab, where run --push finds it
	@for a in arm64 arm riscv64 mipsle; do \
		echo "bin/offlab-linux-$$a"; \
		GOARCH=$$a $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/offlab-linux-$$a ./cmd/offlab; done

run: build ## run the main job on the built-in lab: a verdict in under a minute
	@$(BIN) run --budget 45s || { s=$$?; [ $$s -eq 1 ] && exit 0; exit $$s; }

deps: ## install the Debian packages that the tests use (root only, when missing)
	@scripts/deps.sh

lint: ## formatting, vet and golangci-lint
	$(TOOLS) golangci-lint run ./...

test: deps lint ## everything CI runs: lint, then every test with -race
	scripts/test.sh ./...

check: lint ## lint and the tests that need neither root nor time
	$(GO) test -short ./...

clean: ## remove what was built
	rm -rf bin

include $(wildcard mk/*.mk)
