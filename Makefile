# Rouse. The first two targets are what the README begins with.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GOFLAGS_BIN := -trimpath -ldflags "-s -w -X main.version=$(VERSION)"
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

CADDY_VERSION := v2.11.9

# The compose stack.
COMPOSE     ?= $(shell scripts/compose)
export COMPOSE_PROJECT_NAME ?= rouse
export BUILD_TARGET         ?= prebuilt
ROLES       := nats gateway scaler
WORKLOADS   := hello wiki

# Failures of make test that are run again, alone; 0: none. What passes then is
# listed as unsteady.
AGAIN       ?= 5
TESTREPORT  := go run ./internal/testreport -again $(AGAIN)

# Bounds of the long ones.
FUZZ_TIME   ?= 10s
SOAK_TIME   ?= 10m
REPEAT_TIME ?= 10m

# Where make bench writes, and which stages it has; none named: all.
BENCH_REPORT ?= docs/benchmarks/$(shell date -u +%F)-bench.md
BENCH_STAGES ?=

# The tests of the router that are run a second time, with lean: false; and
# those of them that meet net/http alone in any case.
BOTH_FLOORS := Answer|Bod|Client|Header|Sent|Connection|Pipelined|TwoWays|Refused|Informational|Stop|Nobody|Trailer|Request|Idle
ONE_FLOOR   := Silence|TLS|HTTP2|GRPC|WebSocket|Tunnel|Memory

# Those that the race detector would make say nothing.
WITHOUT_RACE := Small|Allocates

# The tests of make storms, and where it writes what it measured.
STORMS        := AtOnceAreStartedOnceEach|HeldForManyWorkloads|SurplusOfHeldRequests|AScanner|Replayed
STORMS_REPORT ?= docs/benchmarks/$(shell date -u +%F)-storms.md

# How often make chaos goes through all faults, and where it writes the table.
CHAOS_ROUNDS ?= 20
CHAOS_REPORT ?= docs/reliability.md

.PHONY: help demo test build dist up down bench sablier soak repeat storms chaos fuzz lint docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## run everything in one process, with a workload that sleeps; Ctrl-C ends it
	@scripts/demo

test: ## vet, lint, unit, race and integration tests; says what was skipped and why
	@scripts/need-go
	@scripts/need-docker
	@scripts/need-proxies
	@scripts/need-browser
	@scripts/need-prometheus
	@$(MAKE) --no-print-directory lint
	@$(TESTREPORT) -packages ./system_test/simulation -count=1 -run TestSimulation -timeout 15m
	@$(TESTREPORT) -packages "./system_test ./e2e ./..." -race -count=1 -timeout 15m
	@$(TESTREPORT) -packages ./router -count=1 -timeout 5m -run '$(BOTH_FLOORS)' -skip '$(ONE_FLOOR)' -args -lean=false
	@$(TESTREPORT) -packages ./router -count=1 -timeout 5m -run '$(WITHOUT_RACE)'

build: ## bin/rouse and bin/loadtest, static
	@scripts/need-go
	@CGO_ENABLED=0 go build $(GOFLAGS_BIN) -o bin/ ./cmd/rouse ./cmd/loadtest

dist: ## dist/rouse and dist/loadtest for the image: static, for Linux
	@scripts/need-go
	@CGO_ENABLED=0 GOOS=linux go build $(GOFLAGS_BIN) -o dist/ ./cmd/rouse ./cmd/loadtest

up: $(if $(filter prebuilt,$(BUILD_TARGET)),dist) ## start the compose stack with its workloads asleep
	@$(COMPOSE) build nats
	@$(COMPOSE) up --no-start $(WORKLOADS)
	@$(COMPOSE) up -d $(ROLES)
	@scripts/await-stack "$(COMPOSE)"

down: ## stop the compose stack; its volume stays
	@$(COMPOSE) down --remove-orphans

bench: build ## all benchmarks in 20 minutes; writes BENCH_REPORT and a directory beside it
	@scripts/need-docker
	@scripts/need-proxies
	@[ -x bin/caddy ] || GOBIN=$(CURDIR)/bin go install github.com/caddyserver/caddy/v2/cmd/caddy@$(CADDY_VERSION)
	@scripts/bench $(BENCH_REPORT) $(BENCH_STAGES)

sablier: build ## the four scenarios of Sablier's benchmark, 10 s each, and a million calls
	@timeout 10m scripts/bench-sablier 10 1000000

soak: build ## everything at once for SOAK_TIME: fails on a lost request, and on a leak
	@scripts/need-docker
	@scripts/soak $(SOAK_TIME)

repeat: ## repeat the system tests for REPEAT_TIME
	@scripts/repeat $(REPEAT_TIME)

storms: ## thousands of requests to sleeping workloads, and replayed traces; writes STORMS_REPORT
	@scripts/need-docker
	@timeout 15m go test -count=1 -timeout 14m -run '$(STORMS)' ./system_test -args -storms.full -storms.report=$(abspath $(STORMS_REPORT))
	@echo "written: $(STORMS_REPORT)"

chaos: ## let everything fail in turn under load, for at most 20 minutes; writes CHAOS_REPORT
	@scripts/need-docker
	@timeout 20m go test -count=1 -timeout 19m30s -run '^TestFaults$$' ./system_test -args -chaos.rounds=$(CHAOS_ROUNDS) -chaos.report=$(abspath $(CHAOS_REPORT))
	@echo "written: $(CHAOS_REPORT)"

fuzz: ## run every fuzz target for FUZZ_TIME
	@scripts/fuzz $(FUZZ_TIME)

lint: ## formatting, vet, staticcheck, import rules
	@scripts/need-go
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi
	@go vet ./...
	@$(STATICCHECK) ./...
	@go test -count=1 ./internal/archtest

docs: build ## write what is derived from the code, and check the links
	@bin/rouse config schema > docs/config.schema.json
	@scripts/check-links

clean: ## remove what was built
	@rm -rf bin results && find dist -mindepth 1 ! -name .gitkeep -delete
