.PHONY: bench-nic soak

SOAK  ?= 10m
PAIRS ?= 9
SLOT  ?= 2s

bench-nic: ## the soft NIC beside a minimal TAP-to-TAP loop and veth, ABBA (root; PAIRS=9 SLOT=2s)
	@mkdir -p bin
	$(GO) build -trimpath -o bin/benchnic ./internal/tools/benchnic
	@bin/benchnic -pairs $(PAIRS) -slot $(SLOT)

soak: ## traffic over the soft NIC for SOAK (10m): flat heap, equal counters at every station (root)
	OFFLAB_REQUIRE=all OFFLAB_SOAK=$(SOAK) $(GO) test -count=1 -timeout 24h -v -run '^TestKernelSoak$$' ./internal/softnic
