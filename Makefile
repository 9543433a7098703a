# make help lists the targets. Only Go and make are needed for build, run and test.

GO      ?= go
DIR     ?= data
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -X main.version=$(VERSION)
# The race detector needs a C compiler; without one the same tests run without it, and say so.
RACE    := $(shell command -v cc >/dev/null 2>&1 && echo -race)
# The long ones: minutes each.
LONG    := Lastfm$$
# Where goroutines share state: these run under the race detector, the rest without.
RACY    := ./processors/... ./topics/... ./serving/...

.PHONY: help build run test test-lastfm test-services vet check lint fmt bench-rows bench-short clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

build: ## build bin/smartfeed
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/smartfeed .

run: build ## start everything in one process with a demo product, on http://127.0.0.1:8080
	bin/smartfeed dev --dir $(DIR) --demo

test: ## every test but the long imports; race detector where goroutines share state
	@test -n "$(RACE)" || echo "no C compiler: the tests run without the race detector"
	$(GO) test -skip '$(LONG)' ./...
	@test -z "$(RACE)" || $(GO) test -race -short -skip '$(LONG)' $(RACY)

test-lastfm: ## the Last.fm set against brute force, also through five kills; files in LASTFM_DIR or ../shared/data/lastfm-2k
	$(GO) test -timeout 30m -run '$(LONG)' -v .

test-services: ## the same tests on a real Kafka, brought and started by .ci/services
	.ci/services start kafka
	SMARTFEED_TEST_KAFKA=127.0.0.1:19092 $(GO) test -count=1 -run 'RealKafka' -v ./topics; status=$$?; .ci/services clean kafka; exit $$status

vet: ## format and vet
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	$(GO) vet ./...

check: vet test ## what to run before a commit

lint: ## golangci-lint, where it is installed
	golangci-lint run

fmt: ## format
	gofmt -w .

bench-short: ## every benchmark once, to see that it runs
	$(GO) test -run '^$$' -bench . -benchtime 1x ./schemas ./serving/...

bench-rows: ## row tables beside the bare loop doing the same
	$(GO) test -run '^$$' -bench Rows -benchtime 1x ./processors/rows

clean: ## remove what build and run made
	rm -rf bin data
