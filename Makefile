# make help lists the targets. Only Go and make are needed for build, run and test.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -X main.version=$(VERSION)
# The race detector needs a C compiler; without one the same tests run without it, and say so.
RACE    := $(shell command -v cc >/dev/null 2>&1 && echo -race)
# Where goroutines share state: these run under the race detector, the rest without.
RACY    := ./processors/... ./topics/... ./serving/...

.PHONY: help build run demo test race check lint fmt bench-rows bench-feed clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

build: ## build bin/smartfeed
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/smartfeed .

run: build ## start everything in one process with a demo product, on http://127.0.0.1:8080
	bin/smartfeed dev --dir data --demo

test: ## every test; race detector where goroutines share state
	@test -n "$(RACE)" || echo "no C compiler: the tests run without the race detector"
	$(GO) test ./...
	@test -z "$(RACE)" || $(GO) test -race -short $(RACY)

check: ## what CI holds: format, vet, tests
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(MAKE) test

lint: ## golangci-lint, where it is installed
	golangci-lint run

fmt: ## format
	gofmt -w .

bench-rows: ## row tables beside the bare loop doing the same
	$(GO) test -run '^$$' -bench Rows -benchtime 1x ./processors/rows

clean: ## remove what build and run made
	rm -rf bin data
