.PHONY: exact fuzz bench-engine

N        ?= 20000
FUZZTIME ?= 20s
REPS     ?= 15

exact: ## compare gso and gro with the running kernel, N cases of each kind (root; N=20000, OFFLAB_SEED=…)
	OFFLAB_REQUIRE=all OFFLAB_EXACT_N=$(N) $(GO) test -count=1 -timeout 24h -v -run '^TestKernel' ./gso ./gro

fuzz: ## run every fuzz target for FUZZTIME (20s)
	@for pkg in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "== $$pkg $$f"; \
			$(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

bench-engine: ## gso, gro and checksum beside other engines, same work, same run (REPS=15)
	cd bench && $(GO) run . -reps $(REPS)
