# trainyard: everything a newcomer needs is `make demo` and `make test`; both set up what they need.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
GO    ?= go
ROOT  := $(shell [ "$$(id -u)" = 0 ] && [ "$$(uname -s)" = Linux ] && echo yes)
TEST  := $(GO) run ./test/run
BUILD := $(GO) run ./test/tools/cmd/build

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the three programs, into bin/
	$(GO) build -o bin/trainyard-exporter ./exporter
	$(GO) build -o bin/trainyard-actuator ./actuator
	$(GO) build -o bin/trainyard ./actuator/ctl/trainyard

demo: tools build $(if $(ROOT),lab-deps) ## watch a congested fabric heal itself: real switches as root, a simulated plant otherwise
	$(GO) run ./test/demo $(DEMO_FLAGS)

test: check test-collector test-tools test-lab lint ## everything; each part has its own target and its log in .log/

check: check-generated ## unit tests with the race detector: no root, no external binary
	$(GO) vet -tags lab,tools ./...
	@bad=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$bad" ] || { echo "not gofmt-ed: $$bad"; exit 1; }
	$(TEST) -log .log/check.log -- -race ./...

check-generated: ## what is generated and committed is current
	$(GO) generate ./...
	@git diff --exit-code --stat -- docs rules deploy || { echo "generated files were not current; commit the above"; exit 1; }

test-collector: ## the OpenTelemetry Collector distribution (its own module)
	$(TEST) -log .log/collector.log -C collector -- ./...

test-tools: tools build ## tests against real Prometheus, promtool, Alertmanager and helm
	$(BUILD) helm
	$(TEST) -log .log/tools.log -- -tags tools -count=1 -p 1 $$($(GO) run ./test/run/tagged tools)

test-lab: $(if $(ROOT),lab-deps tools build) ## tests on real switches in network namespaces; needs root
ifeq ($(ROOT),yes)
	$(TEST) -log .log/lab.log -- -tags lab -count=1 -p 1 -timeout 25m $$($(GO) run ./test/run/tagged lab)
else
	@echo "test-lab needs root on Linux (network namespaces); not run"; [ -z "$${CI:-}" ]
endif

bench-lab: lab-deps ## forecasts against measured link loads, on fair and on drop-tail links; needs root
	$(GO) run ./test/bench/lab

tools: ## build the pinned tools from the Go module proxy, once
	$(BUILD) prometheus promtool alertmanager amtool

lab-deps: ## install the Debian packages of the lab; needs root
	$(GO) run ./test/lab/cmd/labdeps

lint: ## golangci-lint, pinned
	$(BUILD) golangci-lint
	lint=$$($(BUILD) -print golangci-lint) && $$lint run ./...

.PHONY: help build demo test check check-generated test-collector test-tools test-lab bench-lab tools lab-deps lint
