# `make help` lists the targets. build, run and test need only Go and make.

GO      ?= go
DIR     ?= data
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# -s -w omit the debugger's tables, a third of the binary. Stack traces and profiles do not need them. For a debugger, run
# `go build`.
LDFLAGS := -s -w -X github.com/smartfeed/smartfeed/app.version=$(VERSION)
# Platforms of the released binaries, as in .goreleaser.yaml.
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
# Tests that take minutes each.
LONG    := Lastfm$$
# Tests that take five seconds of CPU time or half a minute. `make test-slow` runs them, and `make nightly` too, under the race
# detector. They kill processes in loops, run the whole product several times, or simulate many experiments.
SLOW    := ^Test(Processes_ShareGroups|Roles_RunInSeparateProcesses|ACLs_SufficeAfterCutOver|EraseAgain_AfterRestore|Erase_CountsRowsOfRetired|Replay_Resumes|Backup_|Import_SurvivesKills|Product_MatchesBruteForceWhenPulled|Generation_(ResumesAndAborts|AppliesAnotherCap|IsShared|KeepsUsers)|StaticMembers|TortureOfMembers|Run_IntervalsCoverTruth)
LONGEST := ./app ./topics ./processors/rows ./internal/cli ./processors/fanout ./processors/pools ./processors/actors
# Tests in a real browser.
BROWSER := Browser
# The module `test` has the tests with large dependencies. Where its go.mod and ours name other versions of a module, everything
# above that module is compiled twice. -count=1, because they read files outside of their module, and Go's
# test cache does not notice changes of these.
TESTMODULE = cd test && $(GOTEST) -count=1
# Packages whose goroutines share state. `make test-racy` runs their tests RACY_TESTS under the race detector; `make test-race`
# runs all.
RACY    := ./processors ./processors/rows ./processors/pools/... ./processors/external ./processors/retries ./processors/interests ./internal/tracing ./internal/otlp ./topics/... ./serving/...

# Tests use /dev/shm for temporary files if it has 4 GiB free and programs can be executed there. They create and delete tens of
# thousands of small files, and ext4 slows down: it skips each recently deleted inode when it searches for a free one.
MEMORY := $(shell grep -q ' /dev/shm [^ ]* [^ ]*noexec' /proc/mounts 2>/dev/null || df -Pm /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 >= 4096 { print $$6 }')
ifneq ($(MEMORY),)
test test-slow test-racy test-race fuzz mutants: export TMPDIR ?= $(MEMORY)
endif
# Tests compile faster without cgo. Builds and benchmarks use cgo if there is a C compiler: without it, Pebble's caches are on
# Go's heap and need 1.6 times the memory (see Limits in README.md). The race detector requires cgo.
test test-slow mutants: export CGO_ENABLED ?= 0
# Less frequent garbage collection takes a fifth less CPU time, and up to 3 GiB of memory.
test test-slow: export GOGC ?= 1000
test-racy test-race: export CGO_ENABLED = 1

# The compiler needs a quarter less CPU time if it collects no garbage below 1 GiB of heap. Its output is the same.
export COMPILE_WITH ?= env GOGC=off GOMEMLIMIT=1GiB
TOOLEXEC := -toolexec '$(COMPILE_WITH)'
# An eighth less CPU time: no debugging information, which -w and -s drop anyway. All commands of the targets inherit these
# flags, so that they share the build cache.
NO_DWARF := -gcflags=all=-dwarf=false
export GOFLAGS := $(strip $(filter-out $(NO_DWARF),$(shell $(GO) env GOFLAGS 2>/dev/null)) $(NO_DWARF))
# -w halves the time to link a test. -vet=off, because `make vet` runs go vet. Go's default timeout of 10 minutes is too short
# on a busy machine; a later -timeout overrides this one.
GOTEST := $(GO) test $(TOOLEXEC) -ldflags=-w -vet=off -timeout 30m

# Addresses of the servers that .ci/services starts. Kafka has one node, or three in the cluster.
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
JMX           := 127.0.0.1:$(shell echo $$(($(KAFKA_PORT) + 5))),127.0.0.1:$(shell echo $$(($(CASSANDRA_PORT) + 10)))
SERVERS       := $(KAFKA),127.0.0.1:$(REGISTRY_PORT),$(CASSANDRA),$(PINOT),$(PINOT_BROKER)
SECURED       := SMARTFEED_TEST_KAFKA_SECURED=127.0.0.1:$(shell echo $$(($(KAFKA_PORT) + 40))) \
                 SMARTFEED_TEST_REGISTRY_SECURED=127.0.0.1:$(shell echo $$(($(REGISTRY_PORT) + 1))) \
                 SMARTFEED_TEST_CASSANDRA_SECURED=127.0.0.1:$(shell echo $$(($(CASSANDRA_PORT) + 2))) \
                 SMARTFEED_TEST_CERTIFICATES=$(abspath $(or $(SERVICES_DIR),.ci/state)/certificates)
KAFKA_CLUSTER := $(shell for i in 1 2 3; do printf '127.0.0.1:%d\n' $$(($(KAFKA_PORT) + 10 * i)); done | paste -sd,)

.PHONY: help build cross run docs up down demo test test-slow test-racy test-race test-browser test-deploy test-models test-lastfm test-services test-kafka test-cassandra test-secured test-pinot test-product test-pages test-import test-lastfm-real test-upgrade upgrade-fixture nightly mutants vet check lint fmt bench-serving bench-stream bench-stream-kafka bench-feed bench-rows bench-features bench-pinot bench-scale bench-short clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 20

build: ## build bin/smartfeed
	$(GO) build $(TOOLEXEC) -trimpath -ldflags '$(LDFLAGS)' -o bin/smartfeed .

# The builds of a release, without cgo. Each takes minutes without a build cache.
cross: ## build bin/smartfeed_OS_ARCH for each released platform
	for p in $(PLATFORMS); do \
	  CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build $(TOOLEXEC) -trimpath -ldflags '$(LDFLAGS)' -o bin/smartfeed_$${p%/*}_$${p#*/} . || exit 1; \
	done

run: build ## build, start everything in one process and load a demo: http://127.0.0.1:8080
	bin/smartfeed dev --dir $(DIR) --demo

up: ## start smartfeed and its servers in containers (docker-compose.yml)
	VERSION=$(VERSION) docker compose up --build --detach --wait

down: ## stop the containers and keep their volumes
	docker compose --profile '*' down

demo: up ## send simulated user actions to the containers, until ctrl-c
	docker compose run --rm demo

# On two cores, three packages at a time, because many tests wait for timers. The longest go first, so that none runs alone at
# the end.
test: ## run all tests except the slow ones, the long imports and the browser tests
	$(GOTEST) $(if $(filter 2,$(shell getconf _NPROCESSORS_ONLN)),-p 3) -skip '$(LONG)|$(SLOW)' $(LONGEST) ./...
	$(TESTMODULE) -skip '$(BROWSER)' ./...

test-slow: ## run the slow tests, which test leaves out
	$(GOTEST) -run '$(SLOW)' ./app ./processors/rows ./internal/tools/evaluate

# Without the tests of oversized batches: they decode hundreds of MB, which takes minutes under the race detector.
test-racy: ## test packages with shared state under the race detector; needs a C compiler
	$(GOTEST) -race -short $(if $(RACY_TESTS),-run '$(RACY_TESTS)') -skip '$(LONG)|$(SLOW)|OversizedBatch' $(RACY)

# On two cores, the tests of app take half an hour.
test-race: ## run all tests except the long imports under the race detector
	$(GOTEST) -race -timeout 90m -skip '$(LONG)' ./...

test-lastfm: ## import the Last.fm data of LASTFM_DIR, also through five kills; compare with brute force
	$(GOTEST) -run '$(LONG)' -v ./app

test-browser: ## test the console in headless Chromium; SMARTFEED_SCREENSHOTS=DIR keeps screenshots
	export SMARTFEED_TEST_BROWSER=$${SMARTFEED_TEST_BROWSER:-1}; $(TESTMODULE) -run '$(BROWSER)' ./...

# The tools of the examples: virtual environments and jars, fetched again when the pinned versions change.
EXAMPLES := .cache/examples
$(EXAMPLES)/python/installed: examples/python-producer/requirements.txt
$(EXAMPLES)/training/installed: examples/training/requirements.txt
$(EXAMPLES)/python/installed $(EXAMPLES)/training/installed:
	python3 -m venv --clear $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@
$(EXAMPLES)/java/installed: examples/java-producer/pom.xml
	rm -rf $(@D)
	mvn -q -B --strict-checksums -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(abspath $(@D))
	touch $@

.PHONY: test-examples test-cdc demo-training
demo-training: build $(EXAMPLES)/training/installed ## train a model on logged visits, serve it, and compare its feed; needs Python 3
	$(EXAMPLES)/training/bin/python examples/training/demo.py bin/smartfeed

test-examples: $(EXAMPLES)/python/installed $(EXAMPLES)/training/installed $(EXAMPLES)/java/installed ## test the web page, the training loop and the producers in Python and Java; needs Chromium, Python, Maven and a JDK
	export SMARTFEED_TEST_EXAMPLES=$(abspath $(EXAMPLES)) SMARTFEED_TEST_BROWSER=$${SMARTFEED_TEST_BROWSER:-1}; $(TESTMODULE) -run '^TestExample_' -v .

test-cdc: ## test change data capture with Debezium, killing Connect; CDC=FeedFollowsTables selects a test; needs PostgreSQL, Maven and Java
	SMARTFEED_TEST_CDC=1 $(GOTEST) -count=1 -run 'RealConnect_$(CDC)' -v ./examples/cdc

.PHONY: clients test-clients
clients: ## generate the clients in the folder clients from the OpenAPI document; needs Node.js and Python 3
	UPDATE=1 $(GOTEST) -run CopyOfClients ./serving/api
	UPDATE=1 $(GOTEST) -run TestEvent_HasFieldsOfDocument ./serving/client
	.ci/clients generate

test-clients: build ## test the clients for Go, TypeScript and Python against fakes and bin/smartfeed; needs Node.js and Python 3
	.ci/clients test bin/smartfeed

test-models: ## test models on MLServer and KServe, which .ci/models installs from PyPI; needs Python 3.9 to 3.12
	.ci/models $(GOTEST) -count=1 -run RealModels -v ./processors/inference

test-deploy: ## test the Helm chart, .goreleaser.yaml and the GitHub workflows; compiling Helm and Kubernetes takes a minute
	cd test/deploy && $(GO) vet $(TOOLEXEC) . && $(GOTEST) -count=1 .

test-services: test-kafka test-cassandra test-secured test-pinot test-product ## test on real servers, which .ci/services downloads and starts

test-kafka: ## test broker-dependent behavior on Kafka, with one broker and with three; KAFKA_SKIP and CLUSTER_SKIP omit tests
	.ci/services with kafka -- env SMARTFEED_TEST_KAFKA=$(KAFKA) ROWS_TORTURE=$${ROWS_TORTURE:-4} $(GOTEST) -p 1 -count=1 -timeout 20m -run RealKafka $(if $(KAFKA_SKIP),-skip '$(KAFKA_SKIP)') -v ./topics ./internal/ops ./processors/rows
	.ci/services with $(CLUSTER) -- env SMARTFEED_TEST_KAFKA=$(KAFKA_CLUSTER) $(GOTEST) -p 1 -count=1 -timeout 20m -run 'RealKafkaTorture|RealKafkaRack' $(if $(CLUSTER_SKIP),-skip '$(CLUSTER_SKIP)') -v ./topics ./processors/rows

test-cassandra: ## test the feed stores on a primary and a standby Cassandra; CASSANDRA_SKIP omits tests
	.ci/services with $(CASSANDRAS) -- env SMARTFEED_TEST_CASSANDRA=$(CASSANDRA) $(GOTEST) -count=1 -p 1 -timeout 60m -run RealCassandra $(if $(CASSANDRA_SKIP),-skip '$(CASSANDRA_SKIP)') -v ./serving/feedstore/...

test-secured: ## test Kafka, the registry and Cassandra with TLS and authentication
	.ci/services with kafka-secured registry-secured cassandra-secured -- env $(SECURED) \
	  $(GOTEST) -p 1 -count=1 -timeout 10m -run RealSecured -v ./schemas ./topics ./serving/feedstore/cassandra ./app

# The gate makes 100 random reads per round, and nightly five times as many.
nightly: PINOT_CHECKS = 500
test-pinot: ## test features on Pinot with ZooKeeper; PINOT_HOME is the binary distribution of another release
	.ci/services with pinot -- env SMARTFEED_TEST_PINOT=$(PINOT) \
	  $(GOTEST) -count=1 -run 'RealPinot$$' -v ./serving/feature/conformance -rapid.checks=$(or $(PINOT_CHECKS),100)
	.ci/services with pinot-roles -- env SMARTFEED_TEST_PINOT=$(PINOT) SMARTFEED_TEST_PINOT_ROLES=$(abspath $(or $(SERVICES_DIR),.ci/state)/data/pinot-roles) \
	  $(GOTEST) -count=1 -run RealPinotRoles -v ./serving/feature/conformance

test-monitoring: ## test the dashboard of Kafka and Cassandra on real servers with the JMX exporter
	JMX_EXPORTER=1 .ci/services with kafka cassandra-primary -- env -C test SMARTFEED_TEST_JMX=$(KAFKA),127.0.0.1:$(CASSANDRA_PORT),$(JMX) \
	  $(GOTEST) -count=1 -run ServersDashboard -v .

test-product: build ## run each role as a process on real servers, and kill the servers
	.ci/services with kafka registry $(CASSANDRAS) pinot -- .ci/real-product bin/smartfeed

test-pages: ## request PAGES_TEST_COUNT pages per state of the feed stores; STATES='both_up|primary' selects states
	.ci/services with kafka registry $(CASSANDRAS) -- env SMARTFEED_TEST_PAGES=$(KAFKA),127.0.0.1:$(REGISTRY_PORT),$(CASSANDRA) \
	  $(GOTEST) -count=1 -timeout 60m -run 'RealPages/($(or $(STATES),.))' -v ./app

# A short `make test-lastfm-real`, then the tests of `make test-pinot` on the same servers.
test-import: ## import a small Last.fm-like data set through real servers; compare with brute force
	.ci/services with kafka registry $(CASSANDRAS) pinot -- make -s on-all-servers

.PHONY: on-all-servers test-monitoring
on-all-servers:
	SMARTFEED_TEST_SERVERS=$(SERVERS) LASTFM_SCALE=0.015 $(GOTEST) -count=1 -run RealServers_ImportLastfm -v ./app
	SMARTFEED_TEST_PINOT=$(PINOT) $(GOTEST) -count=1 -run 'RealPinot$$' -v ./serving/feature/conformance

test-lastfm-real: ## import the Last.fm data through real servers, with a process per role; compare with brute force
	.ci/services with kafka registry $(CASSANDRAS) pinot -- env SMARTFEED_TEST_SERVERS=$(SERVERS) \
	  $(GOTEST) -count=1 -timeout 60m -run RealServers_ImportLastfm -v ./app

nightly: test-race test-secured test-browser test-clients test-examples test-cdc test-upgrade cross test-deploy test-monitoring test-models test-lastfm-real test-kafka test-pinot test-product footprint mutants ## run the longer versions of all tests, each fuzz target for 30 s, and all mutants
	FUZZTIME=30s .ci/fuzz
	$(GOTEST) -run '^$$' -bench 'Serving$$' -benchtime 1x ./app
	ROWS_TORTURE=17 $(GOTEST) -count=1 -run TestTorture -v ./processors/rows
	.ci/services with kafka -- env SMARTFEED_TEST_KAFKA=$(KAFKA) ROWS_TORTURE=7 $(GOTEST) -count=1 -run RealKafkaTorture -v ./processors/rows
	.ci/services with kafka -- env SMARTFEED_TEST_KAFKA=$(KAFKA) $(GOTEST) -run '^$$' -bench RowsHop -benchtime 1x -count 3 ./processors/rows
	.ci/services with $(CLUSTER) -- env SMARTFEED_TEST_KAFKA=$(KAFKA_CLUSTER) ROWS_TORTURE=15 $(GOTEST) -count=1 -timeout 60m -run RealKafkaTorture -v ./processors/rows
	CASSANDRA_TEST_READS=20000 $(MAKE) test-cassandra
	PAGES_TEST_COUNT=20000 $(MAKE) test-pages
	STREAM_SIZE=tiny $(MAKE) bench-stream-kafka

RELEASE ?= $(shell git describe --tags --abbrev=0 2>/dev/null || git rev-parse HEAD)
test-upgrade: ## upgrade from the program of RELEASE (default: the last tag) and back, under load and kills
	SMARTFEED_TEST_RELEASE=$(RELEASE) $(GOTEST) -count=1 -run TestUpgrade_ContinuesStateOfRelease -v ./app

upgrade-fixture: ## record app/testdata/upgrade.tar.gz, the state directory of this version for the upgrade test
	SMARTFEED_TEST_RECORD=1 $(GOTEST) -count=1 -run TestUpgrade_Record -v ./app

mutants: ## disable the protections in .ci/mutants/mutants.txt one by one; tests must fail. ONLY=rows selects some
	nice $(GO) run ./.ci/mutants -only '$(ONLY)'

vet: ## check the format and the language, run go vet, and check that the mutants match the code
	.ci/language
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	$(GO) vet $(TOOLEXEC) ./...
	cd test && $(GO) vet $(TOOLEXEC) ./...
	$(GO) run ./.ci/mutants -n

check: vet test test-racy ## run vet, test and test-racy, before a commit

lint: ## run golangci-lint, which must be installed
	golangci-lint run

fmt: ## format the code
	gofmt -w .

bench-short: ## fail if rows or deliveries cost a multiple of the bare loop; run other benchmarks once
	$(GOTEST) -run '^$$' -bench . -benchtime 1x ./serving/feature
	$(GOTEST) -run '^$$' -bench 'Rows$$' -benchtime 1x ./processors/rows
	BENCH_FEED_SCALE=0.1 $(GOTEST) -run '^$$' -bench 'Feed$$' -benchtime 1x ./internal/tools/bench

bench-features: ## measure features over HTTP, the feature store alone and the bare rows
	$(GOTEST) -run '^$$' -bench 'Features$$' -benchtime 1x ./app
	$(GOTEST) -run '^$$' -bench 'TenFeatures|Items|1000Pins|Matrix|Ingest' -benchtime 2s ./serving/feature

bench-pinot: ## measure features on Pinot, which .ci/services downloads and starts
	.ci/services with pinot -- env SMARTFEED_TEST_PINOT=$(PINOT) $(GOTEST) -run '^$$' -bench RealPinot -benchtime 1x ./serving/feature/conformance

.PHONY: bench-serves
bench-serves: ## measure one, two and four serve under the same load on real servers, and their starts next to SERVES_ACTIONS actions
	.ci/services with kafka registry $(CASSANDRAS) pinot -- env SMARTFEED_TEST_SERVERS=$(SERVERS) \
	  $(GOTEST) -count=1 -timeout 60m -run RealServers_ShareLoad -v ./app

.PHONY: fuzz bench-sizing
bench-sizing: ## measure bytes and CPU time per event, delivery and visit, for docs/design/cost-model.md
	$(GOTEST) -run '^$$' -bench 'Sizing$$' -benchtime 1x ./app

fuzz: ## run every fuzz target for FUZZTIME (10s), two at a time
	.ci/fuzz

bench-serving: ## measure pages, visits and overload against a bare handler, then memory over five minutes
	$(GOTEST) -run '^$$' -bench 'Serving$$' -benchtime 1x ./app
	$(GOTEST) -run '^$$' -bench 'Steady$$' -benchtime 1x ./app

BENCH_STREAM = $(GOTEST) -run '^$$' -bench Stream -benchtime 1x ./internal/tools/bench/stream

bench-stream: build ## measure a realistic product against a bare loop; STREAM_SIZE=medium STREAM_PARTS=actions,visits
	$(BENCH_STREAM)

bench-stream-kafka: build ## the same on Kafka, which .ci/services downloads and starts; STREAM_PROCESSES=groups
	.ci/services with kafka -- env SMARTFEED_TEST_KAFKA=$(KAFKA) STREAM_SERVICES=$(abspath $(or $(SERVICES_DIR),.ci/state)) $(BENCH_STREAM)

bench-feed: ## measure deliveries against a bare loop, latencies and chunks; BENCH_FEED_SCALE=0.1 runs a tenth
	$(GOTEST) -run '^$$' -bench Feed -benchtime 1x ./internal/tools/bench
	$(GOTEST) -run '^$$' -bench Deliveries -benchtime 1x ./processors/pools
	$(GOTEST) -run '^$$' -bench 'Chunk|Waiting' -benchtime 4000x ./processors/pools
	$(GOTEST) -run '^$$' -bench Spacing -benchtime 20x ./processors/rules

bench-scale: build ## measure time, memory and disk of 1.2 million users with 10 million edges; PEOPLE=30000 is a fortieth
	.ci/scale bin/smartfeed

.PHONY: footprint
footprint: build ## measure the binary size, start times and idle memory; fail above five times the targets
	.ci/footprint bin/smartfeed

bench-rows: ## measure rows against a bare loop
	$(GOTEST) -run '^$$' -bench Rows -benchtime 1x ./processors/rows

DOCS := .cache/docs

# A virtual environment, recreated when the pinned versions change.
$(DOCS)/installed: docs/requirements.txt
	python3 -m venv --clear $(DOCS)
	$(DOCS)/bin/pip install --quiet --disable-pip-version-check -r docs/requirements.txt
	touch $@

docs: $(DOCS)/installed ## build the documentation site into .cache/site; needs Python 3
	$(DOCS)/bin/mkdocs build --strict

.PHONY: spell
spell: $(DOCS)/installed ## check the spelling in all files; needs Python 3
	git ls-files -z ':!*/vendor/*' ':!*.sum' ':!*.hex' ':!*.png' | xargs -0 $(DOCS)/bin/codespell

clean: ## remove the files of build, run, docs and clients
	rm -rf bin data .cache clients/typescript/dist clients/typescript/node_modules
