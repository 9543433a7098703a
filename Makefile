# make help lists the targets. Only Go and make are needed for build, run and test.

GO      ?= go
DIR     ?= data
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# Without what only debuggers read, a third less: stack traces and profiles have names and lines all the same, which Go keeps
# in a table of its own. For a debugger: go build.
LDFLAGS := -s -w -X github.com/smartfeed/smartfeed/app.version=$(VERSION)
# The long ones: minutes each.
LONG    := Lastfm$$
# The tests in a real browser.
BROWSER := Browser
# The module test has the tests whose dependencies only tests need. They read files outside of their module, which Go's test
# cache does not see.
TESTMODULE = cd test && $(GOTEST) -count=1
# Where goroutines share state: `make test-racy` runs these under the race detector, `make test-race` everything.
RACY    := ./processors ./processors/rows ./processors/pools/... ./processors/outside ./processors/retries ./processors/interests ./internal/tracing ./internal/otlp ./topics/... ./serving/...

# Tests in memory, where 4 GiB of it are free as a file system that programs may run from: they make and delete tens of
# thousands of small files, and ext4 passes by each that was deleted within some minutes when it looks for the place of a new one.
MEMORY := $(shell grep -q ' /dev/shm [^ ]* [^ ]*noexec' /proc/mounts 2>/dev/null || df -Pm /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 >= 4096 { print $$6 }')
ifneq ($(MEMORY),)
test test-racy test-race fuzz mutants: export TMPDIR ?= $(MEMORY)
endif
# Nobody waits for C that nothing here calls, where a test run is all that is wanted. What is built, and measured, has cgo if
# there is a C compiler: Pebble's memory is Go's without it, which takes half as much again (see Limits in README.md). The
# race detector needs it in any case.
test mutants: export CGO_ENABLED ?= 0
test-racy test-race: export CGO_ENABLED = 1

# Compiling takes a quarter less processor time when the compiler does not collect its garbage before it has a gigabyte of
# it. (What is built is the same.)
export COMPILE_WITH ?= env GOGC=off GOMEMLIMIT=1GiB
FRUGAL := -toolexec '$(COMPILE_WITH)'
# Without what only a debugger reads, a test is linked in half the time; and what go vet finds is for make vet.
# Go's ten minutes are soon over on a busy machine. A later -timeout counts instead.
GOTEST := $(GO) test $(FRUGAL) -ldflags=-w -vet=off -timeout 30m

# Where .ci/services starts Kafka: one node, and the three of a cluster.
export KAFKA_PORT ?= 19092
KAFKA         := 127.0.0.1:$(KAFKA_PORT)
export PINOT_PORT ?= 19070
PINOT         := 127.0.0.1:$(PINOT_PORT)
PINOT_BROKER  := 127.0.0.1:$(shell echo $$(($(PINOT_PORT) + 1)))
export REGISTRY_PORT ?= 19085
CLUSTER       := kafka-1 kafka-2 kafka-3
export CASSANDRA_PORT ?= 19042
CASSANDRAS    := cassandra-primary cassandra-standby
CASSANDRA     := $(shell echo 127.0.0.1:$(CASSANDRA_PORT),127.0.0.1:$$(($(CASSANDRA_PORT) + 1)))
SERVERS       := $(KAFKA),127.0.0.1:$(REGISTRY_PORT),$(CASSANDRA),$(PINOT),$(PINOT_BROKER)
SECURED       := SMARTFEED_TEST_KAFKA_SECURED=127.0.0.1:$(shell echo $$(($(KAFKA_PORT) + 40))) \
                 SMARTFEED_TEST_REGISTRY_SECURED=127.0.0.1:$(shell echo $$(($(REGISTRY_PORT) + 1))) \
                 SMARTFEED_TEST_CASSANDRA_SECURED=127.0.0.1:$(shell echo $$(($(CASSANDRA_PORT) + 2))) \
                 SMARTFEED_TEST_CERTIFICATES=$(abspath $(or $(SERVICES_DIR),.ci/state)/certificates)
KAFKA_CLUSTER := $(shell for i in 1 2 3; do printf '127.0.0.1:%d\n' $$(($(KAFKA_PORT) + 10 * i)); done | paste -sd,)

.PHONY: help build run docs up down demo test test-racy test-race test-browser test-lastfm test-services test-kafka test-cassandra test-secured test-pinot test-product test-pages test-import test-lastfm-real nightly mutants vet check lint fmt bench-serving bench-stream bench-feed bench-rows bench-features bench-pinot bench-scale bench-short clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

build: ## build bin/smartfeed
	$(GO) build $(FRUGAL) -trimpath -ldflags '$(LDFLAGS)' -o bin/smartfeed .

run: build ## start everything in one process with a demo product, on http://127.0.0.1:8080
	bin/smartfeed dev --dir $(DIR) --demo

up: ## the whole product on servers of its own, in containers: docker-compose.yml
	VERSION=$(VERSION) docker compose up --build --detach --wait

down: ## end it; its volumes stay
	docker compose --profile '*' down

demo: up ## give it people who act, until ctrl-c
	docker compose run --rm demo

test: ## every test but the long imports and those in a browser
	$(GOTEST) -skip '$(LONG)' ./...
	$(TESTMODULE) -skip '$(BROWSER)' ./...

test-racy: ## under the race detector, where goroutines share state; it needs a C compiler
	$(GOTEST) -race -short -skip '$(LONG)' $(RACY)

test-race: ## every test but the long imports under the race detector
	$(GOTEST) -race -skip '$(LONG)' ./...

test-lastfm: ## the Last.fm set against brute force, also through five kills; files in LASTFM_DIR or ../shared/data/lastfm-2k
	$(GOTEST) -run '$(LONG)' -v ./app

test-browser: ## the console in a headless Chromium, which must be there; pictures go to SMARTFEED_SCREENSHOTS, if it is set
	export SMARTFEED_TEST_BROWSER=$${SMARTFEED_TEST_BROWSER:-1}; $(TESTMODULE) -run '$(BROWSER)' ./...

test-services: test-kafka test-cassandra test-secured test-pinot test-product ## the same tests on real servers, brought and started by .ci/services

test-kafka: ## one broker, and three: what depends on the broker, as `make test` has it on the embedded one
	.ci/services with kafka -- env SMARTFEED_TEST_KAFKA=$(KAFKA) ROWS_TORTURE=$${ROWS_TORTURE:-4} $(GOTEST) -p 1 -count=1 -timeout 20m -run RealKafka -v ./topics ./processors/rows
	.ci/services with $(CLUSTER) -- env SMARTFEED_TEST_KAFKA=$(KAFKA_CLUSTER) $(GOTEST) -p 1 -count=1 -timeout 20m -run 'RealKafkaTorture|RealKafkaRack' -v ./topics ./processors/rows

test-cassandra: ## a primary and a standby
	.ci/services with $(CASSANDRAS) -- env SMARTFEED_TEST_CASSANDRA=$(CASSANDRA) $(GOTEST) -count=1 -p 1 -timeout 20m -run RealCassandra -v ./serving/feedstore/...

test-secured: ## Kafka, a registry and Cassandra that want TLS and a login
	.ci/services with kafka-secured registry-secured cassandra-secured -- env $(SECURED) \
	  $(GOTEST) -p 1 -count=1 -timeout 10m -run RealSecured -v ./schemas ./topics ./serving/feedstore/cassandra ./app

test-pinot: ## Pinot with its ZooKeeper
	.ci/services with pinot -- env SMARTFEED_TEST_PINOT=$(PINOT) $(GOTEST) -count=1 -run RealPinot -v ./serving/feature/conformance

test-product: build ## every role a process of its own, on Kafka, a registry, two Cassandras and Pinot, which are killed
	.ci/services with kafka registry $(CASSANDRAS) pinot -- .ci/real-product bin/smartfeed

test-pages: ## pages over HTTP while the feed stores are well, slow, hang, dead, overloaded; PAGES_TEST_COUNT=20000 in each state; STATES='up|standby' for some
	.ci/services with kafka registry $(CASSANDRAS) -- env SMARTFEED_TEST_PAGES=$(KAFKA),127.0.0.1:$(REGISTRY_PORT),$(CASSANDRA) \
	  $(GOTEST) -count=1 -timeout 60m -run 'RealPages/($(or $(STATES),.))' -v ./app

# What `make test-lastfm-real` does with the real set, and Pinot's own tests behind it: the servers are the same.
test-import: ## a small set of the Last.fm shape through real servers, against brute force, and what is asked of Pinot
	.ci/services with kafka registry $(CASSANDRAS) pinot -- make -s on-all-servers

.PHONY: on-all-servers
on-all-servers:
	SMARTFEED_TEST_SERVERS=$(SERVERS) LASTFM_SCALE=0.015 $(GOTEST) -count=1 -run RealServersTakeLastfm -v ./app
	SMARTFEED_TEST_PINOT=$(PINOT) $(GOTEST) -count=1 -run RealPinot -v ./serving/feature/conformance

test-lastfm-real: ## the Last.fm set through real servers, each role a process, against brute force; prints what each took
	.ci/services with kafka registry $(CASSANDRAS) pinot -- env SMARTFEED_TEST_SERVERS=$(SERVERS) \
	  $(GOTEST) -count=1 -timeout 60m -run RealServersTakeLastfm -v ./app

nightly: test-race test-browser test-lastfm-real test-kafka test-product footprint mutants ## everything that is too slow for the gate: all races, kills, faults and pages in full; each fuzz target for half a minute; every protection switched off once
	FUZZTIME=30s .ci/fuzz
	ROWS_TORTURE=17 $(GOTEST) -count=1 -run TestTorture -v ./processors/rows
	.ci/services with kafka -- env SMARTFEED_TEST_KAFKA=$(KAFKA) ROWS_TORTURE=7 $(GOTEST) -count=1 -run RealKafkaTorture -v ./processors/rows
	.ci/services with kafka -- env SMARTFEED_TEST_KAFKA=$(KAFKA) $(GOTEST) -run '^$$' -bench RowsHop -benchtime 1x -count 3 ./processors/rows
	.ci/services with $(CLUSTER) -- env SMARTFEED_TEST_KAFKA=$(KAFKA_CLUSTER) ROWS_TORTURE=15 $(GOTEST) -count=1 -timeout 60m -run RealKafkaTorture -v ./processors/rows
	.ci/services with $(CASSANDRAS) -- env SMARTFEED_TEST_CASSANDRA=$(CASSANDRA) CASSANDRA_TEST_READS=20000 $(GOTEST) -count=1 -timeout 60m -run RealCassandraHedged -v ./serving/feedstore/cassandra
	PAGES_TEST_COUNT=20000 $(MAKE) test-pages

mutants: ## switch off one protection after the other: the tests named beside each in .ci/mutants/mutants.txt must fail. ONLY=rows: for some
	nice $(GO) run ./.ci/mutants -only '$(ONLY)'

vet: ## format, vet, and whether the list of mutants fits the code
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	$(GO) vet $(FRUGAL) ./...
	cd test && $(GO) vet $(FRUGAL) ./...
	$(GO) run ./.ci/mutants -n

check: vet test test-racy ## what to run before a commit

lint: ## golangci-lint, where it is installed
	golangci-lint run

fmt: ## format
	gofmt -w .

bench-short: ## what fails when rows, deliveries or pages cost a multiple of the bare loop's; of the others that they run
	$(GOTEST) -run '^$$' -bench . -benchtime 1x ./schemas ./serving/...
	$(GOTEST) -run '^$$' -bench 'Rows$$' -benchtime 1x ./processors/rows
	BENCH_FEED_SCALE=0.1 $(GOTEST) -run '^$$' -bench 'Feed$$' -benchtime 1x ./internal/tools/bench
	$(GOTEST) -run '^$$' -bench 'Serving$$' -benchtime 1x ./app

bench-features: ## features over HTTP, and beside them the store alone and the bare rows
	$(GOTEST) -run '^$$' -bench 'Features$$' -benchtime 1x ./app
	$(GOTEST) -run '^$$' -bench 'TenFeatures|Items|Ingest' -benchtime 2s ./serving/feature

bench-pinot: ## features of users from a real Pinot, which .ci/services brings
	.ci/services with pinot -- env SMARTFEED_TEST_PINOT=$(PINOT) $(GOTEST) -run '^$$' -bench RealPinot -benchtime 1x ./serving/feature/conformance

.PHONY: fuzz bench-sizing
bench-sizing: ## bytes and CPU time of a follow, a pin, a delivery, a candidate, an action, a visit: what docs/operations/deploy.md computes with
	$(GOTEST) -run '^$$' -bench 'Sizing$$' -benchtime 1x ./app

fuzz: ## every fuzz target for FUZZTIME (10s), two at a time
	.ci/fuzz

bench-serving: ## pages beside a bare handler over the same rows, visits, three times what there is capacity for; memory over five minutes; who asks is a process of its own
	$(GOTEST) -run '^$$' -bench 'Serving$$' -benchtime 1x ./app
	$(GOTEST) -run '^$$' -bench 'Steady$$' -benchtime 1x ./app

bench-stream: ## cost of a realistic product beside a bare loop; STREAM_SIZE=medium, STREAM_SEED=11, STREAM_PARTS=actions,visits
	$(GOTEST) -run '^$$' -bench Stream -benchtime 1x ./internal/tools/bench/stream

bench-feed: ## the feed's write path beside the bare loop, full pools, a giant, latencies, chunks; some minutes. BENCH_FEED_SCALE=0.1 is a tenth
	$(GOTEST) -run '^$$' -bench Feed -benchtime 1x ./internal/tools/bench
	$(GOTEST) -run '^$$' -bench Deliveries -benchtime 1x ./processors/pools
	$(GOTEST) -run '^$$' -bench 'Chunk|Waiting' -benchtime 4000x ./processors/pools

bench-scale: build ## a product of 1.2 million people and ten million edges in one process: time, memory, disk. PEOPLE=30000 is a fortieth
	.ci/scale bin/smartfeed

.PHONY: footprint
footprint: build ## size of the binary, how soon `dev` and `serve` are ready, memory when idle; an error five times above what is promised
	.ci/footprint bin/smartfeed

bench-rows: ## row tables beside the bare loop doing the same
	$(GOTEST) -run '^$$' -bench Rows -benchtime 1x ./processors/rows

DOCS := .cache/docs

# A virtual environment of its own, recreated when the pinned versions change.
$(DOCS)/installed: docs/requirements.txt
	python3 -m venv --clear $(DOCS)
	$(DOCS)/bin/pip install --quiet --disable-pip-version-check -r docs/requirements.txt
	touch $@

docs: $(DOCS)/installed ## build the documentation site into .cache/site; it needs Python 3
	$(DOCS)/bin/mkdocs build --strict

clean: ## remove what build, run and docs made
	rm -rf bin data .cache
