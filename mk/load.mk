.PHONY: bench-load

PAIRS ?= 9
SLOT  ?= 2s

bench-load: ## offlab's bulk load beside iperf3, over veth, ABBA (root; PAIRS=9 SLOT=2s)
	@mkdir -p bin
	$(GO) build -trimpath -o bin/benchload ./internal/tools/benchload
	@bin/benchload -pairs $(PAIRS) -slot $(SLOT)
