# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Everything a contributor runs. Each target sets up what it needs; a fresh
# machine needs Go, make, git and a C compiler (for the race detector, which is
# left out if there is none).

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# The tests of one target fill two cores; targets do not run side by side.
.NOTPARALLEL:

GO ?= go

# Without cgo, Go links by itself, in less time and space than gcc does. Only the race detector needs cgo.
export CGO_ENABLED := 0

include hack/controlplane.mk

# The programs of the control plane come from KUBEBUILDER_ASSETS if that folder
# has them all, else from bin/k8s.
ASSETS := $(if $(KUBEBUILDER_ASSETS),$(if $(filter-out $(notdir $(wildcard $(KUBEBUILDER_ASSETS)/*)),$(CONTROLPLANE_PROGRAMS)),,$(KUBEBUILDER_ASSETS)))
WITH_ASSETS := KUBEBUILDER_ASSETS="$(or $(ASSETS),$(CURDIR)/$(CONTROLPLANE_DIR))"

# Tests that enumerate cases run one in 64 of them, and others with every
# commit, so that some commits run all. make test-all runs all.
CORBEL_SLICE ?= 1/64
CORBEL_SLICE_OFFSET := $(or $(CORBEL_SLICE_OFFSET),$(shell hack/slice-offset.sh))
export CORBEL_SLICE CORBEL_SLICE_OFFSET

# go.work has the root module and cmd/corbel. These targets work in other modules of the repository.
bin/tools/controller-gen bin/bench bin/dist-tool ui-screenshots helmparity test-ops test-mount test-dist test-browser bench-browser: export GOWORK := off

# Time limits: a test that hangs ends with a stack trace.
UNIT_TIMEOUT ?= 30m
LIVE_TIMEOUT ?= 90m

# The target vet runs vet once; go test would run it again for each way to build
# a package. Nothing debugs these binaries, so they have no symbols.
GOTEST := $(GO) test -vet=off -count=1 -ldflags=-s
# The same, with the times of packages and tests kept for the end of make test.
TIMES := $(CURDIR)/bin/test.times
TIMED := $(CURDIR)/bin/gotest -times $(TIMES) $(GOTEST)
RACE = $(shell hack/race.sh $(GO))
GOFMT = $(shell $(GO) env GOROOT)/bin/gofmt

# $(call on,SETS,COMMAND) runs COMMAND with the packages of the sets appended. A
# failure to list packages must not look like a list without packages.
on = @packages=$$(hack/packages.sh $(1)) && if [ -n "$$packages" ]; then \
	echo '$(2) [$(1)]'; $(2) $$packages; else echo 'no packages: $(1)'; fi

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^##@ / { print "\n" substr($$0, 5) } /^[a-z][a-z-]*:.*## / { printf "  %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Run

.PHONY: demo
demo: assets ## Show the life of a component on a real control plane (KEEP=1: leave it running).
	@mkdir -p bin
	$(GO) build -o bin/ ./examples/shop ./examples/shop/demo ./cmd/corbel
	@$(WITH_ASSETS) KEEP="$(KEEP)" bin/demo

.PHONY: ui
ui: assets ## Show a component that is ready and one that is not in the browser, on a real control plane, until Ctrl-C.
	@mkdir -p bin
	$(GO) build -o bin/ ./examples/shop ./examples/shop/demo ./cmd/corbel
	@$(WITH_ASSETS) bin/demo -ui

.PHONY: demo-picture
demo-picture: ## Run the demo, and draw a part of what it prints into docs/demo.svg.
	@mkdir -p bin
	@$(MAKE) --no-print-directory demo > bin/demo.txt
	$(GO) run ./hack/picture tree plan why history < bin/demo.txt > docs/demo.svg

.PHONY: ui-screenshots
ui-screenshots: assets ## Draw the page of corbel ui into docs/ui-*.png; this needs Chromium.
	cd test/browser && $(WITH_ASSETS) $(GO) test -vet=off -count=1 -v -timeout $(UNIT_TIMEOUT) -run TestScreenshots -screenshots '$(CURDIR)/docs' .

##@ Test

.PHONY: test
test: forget-times lint assets test-pure helmparity test-ops test-browser test-mount controlplane-test test-live ## Run everything that gates a change, and print what took longest.
	@bin/gotest -times $(TIMES) -slowest 10

.PHONY: forget-times
forget-times:
	@rm -f $(TIMES)

bin/gotest: FORCE
	@mkdir -p bin
	@$(GO) build -o bin/ ./hack/gotest

.PHONY: test-all
test-all: ## The same with every enumeration whole (CORBEL_SLICE=1/1): hours, not minutes.
	@$(MAKE) --no-print-directory test CORBEL_SLICE=1/1 UNIT_TIMEOUT=60m LIVE_TIMEOUT=180m LIVE_PARALLEL=16
	@$(MAKE) --no-print-directory test-dist CORBEL_SLICE=1/1

.PHONY: test-unit
test-unit: ## Run what needs no control plane, without the race detector (seconds).
	$(call on,pure mixed,$(GOTEST) -short -timeout $(UNIT_TIMEOUT))

# The race detector is for the packages with locks, atomics and goroutines of their own.
.PHONY: test-pure
test-pure: bin/gotest
	$(call on,quiet,$(TIMED) -p 2 -timeout $(UNIT_TIMEOUT))
	$(call on,racy,CGO_ENABLED=$(if $(RACE),1,0) $(TIMED) $(RACE) -short -p 2 -timeout $(UNIT_TIMEOUT))

# Four packages at a time, each with a control plane of its own, which starts in two
# seconds: these tests wait more than they compute. The longest packages are first.
.PHONY: test-live
test-live: assets bin/gotest
	$(call on,live mixed,$(WITH_ASSETS) $(TIMED) -p 4 -timeout $(LIVE_TIMEOUT) $(if $(LIVE_PARALLEL),-parallel $(LIVE_PARALLEL)))

# A module of its own: Helm's commands depend on much that users shall not get.
.PHONY: helmparity
helmparity: bin/gotest ## Compare rendered charts with those of helm template (CORBEL_HELM_CHARTS=folder: more charts).
	cd test/helmparity && $(TIMED) -timeout $(UNIT_TIMEOUT) ./...

# A module of its own: the query engine of Prometheus and an interpreter of Lua.
.PHONY: test-ops
test-ops: bin/gotest ## Test the alerts, the dashboard and the health checks that corbel init writes.
	cd test/ops && $(TIMED) -timeout $(UNIT_TIMEOUT) ./...

# A module of its own: the filter of controller-runtime needs the library of API servers.
.PHONY: test-mount
test-mount: assets bin/gotest ## Test the page of corbel ui in a manager, behind a filter that authenticates.
	cd test/mount && $(WITH_ASSETS) $(TIMED) -timeout $(UNIT_TIMEOUT) ./...

# A module of its own: a writer of bills of materials, and one that knows licences.
.PHONY: test-dist
test-dist: bin/gotest ## Test what builds a release; with CORBEL_SLICE=1/1 a release is built twice.
	cd cmd/corbel/hack/dist && $(TIMED) -timeout $(UNIT_TIMEOUT) ./...

# A module of its own: a client of the browser. The tests are skipped where there is none.
.PHONY: test-browser
test-browser: assets bin/gotest ## Test the page of corbel ui in a real browser (CHROMIUM=program; otherwise as the PATH has it).
	@for program in "$$CHROMIUM" chromium chromium-browser google-chrome; do \
		if command -v "$$program" >/dev/null; then cd test/browser && $(WITH_ASSETS) $(TIMED) -timeout $(UNIT_TIMEOUT) ./...; exit; fi; \
	done; echo '--- SKIP: test/browser: there is no Chromium'

# make test runs each command once.
.PHONY: test-tools
test-tools: assets bin/gotest ## Run the tests of cmd/corbel whole.
	CORBEL_SLICE=1/1 $(WITH_ASSETS) $(TIMED) -p 4 -timeout $(LIVE_TIMEOUT) ./cmd/corbel/...

# The kubeconfig must be named: the stories write to the cluster, and the variable of the environment may lead to any.
# Each story has a limit of its own: at that of go test, the run would end without removing what it has created.
.PHONY: conformance
conformance: ## Run the stories for any cluster against KUBECONFIG=file, and write a report (REPORT=bin/conformance.md, IMAGE=…, CRASHES=8).
	@[ '$(origin KUBECONFIG)' = 'command line' ] && [ -n '$(KUBECONFIG)' ] || { echo 'name the cluster, whose administrator you need to be: make conformance KUBECONFIG=file' >&2; exit 2; }
	@rm -f '$(CONFORMANCE_REPORT)'
	@$(GOTEST) -v -timeout 0 ./test/conformance -kubeconfig '$(abspath $(KUBECONFIG))' -report '$(abspath $(CONFORMANCE_REPORT))' \
		-revision '$(REVISION)' $(if $(IMAGE),-image '$(IMAGE)') $(if $(CRASHES),-crashes $(CRASHES)); result=$$?; \
	[ ! -f '$(CONFORMANCE_REPORT)' ] || echo 'the report is $(CONFORMANCE_REPORT). Read it, and send it as an issue: docs/howto-conformance.md'; exit $$result

CONFORMANCE_REPORT = $(or $(REPORT),bin/conformance.md)

.PHONY: test-previous
test-previous: ## Build the root module, and run its unit tests, with the previous versions of controller-runtime and Kubernetes.
	GO='$(GO)' hack/previous.sh

VERSIONS ?= $(CONTROLPLANE_VERSIONS)
# What depends on the server: crashes, watches that break, its types, and the rights to impersonate. They are whole names, which test/architecture checks.
VERSION_TESTS := TestCrash|TestStaleWatches|TestBuiltInKindsAreThoseOfTheServer|TestAnOperatorActsAsAccountsForWhatItNeedsOnly|TestAnOperatorOfOneNamespaceNeedsRolesOnly

# After a failure the other versions are tested as well.
.PHONY: test-versions
test-versions: ## Test what depends on the API server with each version of Kubernetes (VERSIONS='v1.34.4 v1.35.4'): minutes each, after its build.
	@[ -n '$(strip $(VERSIONS))' ] || { echo 'VERSIONS names no version' >&2; exit 2; }
	@failed=; for version in $(VERSIONS); do \
		$(MAKE) --no-print-directory test-version CONTROLPLANE_VERSION=$$version KUBEBUILDER_ASSETS= || failed="$$failed $$version"; \
	done; [ -z "$$failed" ] || { echo "failed with Kubernetes$$failed"; exit 1; }

.PHONY: test-version
test-version: assets
	@echo '== Kubernetes $(CONTROLPLANE_VERSION)'
	$(WITH_ASSETS) $(GOTEST) -timeout $(LIVE_TIMEOUT) ./test/conformance -report '$(CURDIR)/bin/conformance-$(CONTROLPLANE_VERSION).md' -revision '$(REVISION)'
	$(WITH_ASSETS) $(GOTEST) -timeout $(LIVE_TIMEOUT) -run '^($(VERSION_TESTS))$$' ./test/e2e ./internal/rbacrules ./pkg/operator

.PHONY: modelcheck
modelcheck: ## Check the planner against every small history (a million states and more; minutes).
	CORBEL_SLICE=1/1 $(GOTEST) -v -run 'TestInvariantsHoldInEverySmallHistory' -timeout $(UNIT_TIMEOUT) ./pkg/reconciler/internal/model

.PHONY: mutants
mutants: ## Break the rules of safety one at a time, and report which breaks no test without a control plane notices (RUN=regexp; minutes).
	$(GO) run ./test/mutants $(if $(RUN),-run '$(RUN)')

##@ Measure

# Flux and Helm's command are in modules of their own: users of Corbel do not need them.
bin/bench: FORCE
	@mkdir -p bin
	$(GO) build -o bin/ ./test/bench/cmd/bench
	cd test/bench/flux && $(GO) build -o $(CURDIR)/bin/bench-flux .
	cd test/bench/helm && $(GO) build -o $(CURDIR)/bin/bench-helm helm.sh/helm/v4/cmd/helm

.PHONY: FORCE
FORCE:

SIZES ?= 100,1000
REVISION = $(shell git rev-parse --short HEAD 2>/dev/null)$(shell git diff --quiet HEAD -- '*.go' go.mod 2>/dev/null || echo ' with changes')

.PHONY: bench
bench: assets bin/bench ## Measure against a real API server into docs/evidence/performance.* (SIZES=5000,20000,1000x20,flux, ROUNDS=5, OUT=docs/evidence, BENCH=life or plan).
	$(WITH_ASSETS) bin/bench -sizes '$(SIZES)' -rounds $(or $(ROUNDS),0) -out '$(or $(OUT),docs/evidence)' -flux bin/bench-flux -helm bin/bench-helm $(if $(BENCH),-only '$(BENCH)') -revision '$(REVISION)'

SITE_VERSION = $(or $(VERSION),main)

.PHONY: site
site: ## Build the site of the documents into bin/site/VERSION, beside those of other versions (VERSION=main, BASE=/); this needs npm.
	@rm -rf bin/site-src && mkdir -p bin/site bin/site-src
	cp -R site/. bin/site-src/ && rm -rf bin/site-src/node_modules && cp -R docs bin/site-src/docs
	cd bin/site-src && npm ci --no-audit --no-fund && \
		VERSION='$(SITE_VERSION)' VERSIONS="$$(ls ../site | sort -rV | grep -vxF '$(SITE_VERSION)' | tr '\n' ' ')$(SITE_VERSION)" BASE='$(or $(BASE),/)' \
		CRDS="$$(ls ../../examples/*/config/crd/*.yaml | tr '\n' ' ')" npx vitepress build
	rm -rf 'bin/site/$(SITE_VERSION)' && mv bin/site-src/dist 'bin/site/$(SITE_VERSION)'
	@echo "Serve it with: python3 -m http.server -b 127.0.0.1 -d bin/site, and open /$(SITE_VERSION)/."

.PHONY: test-ha
test-ha: assets ## Disturb 40 components while one of three API servers, or etcd, fails in ten ways (HA=regexp, SOAK=1m, SEED=n; minutes each).
	@mkdir -p bin
	$(GO) build -o bin/ ./test/bench/cmd/soak
	$(WITH_ASSETS) bin/soak -ha -components 40 -duration '$(or $(SOAK),1m)' $(if $(HA),-run '$(HA)') $(if $(SEED),-seed $(SEED))

.PHONY: soak
soak: assets ## Disturb 200 components for SOAK=10m under a storm of faults, and check all objects that are left (SEED=n, FAULTS=false, FLEET=true with 1,000 and roll-outs).
	@mkdir -p bin
	$(GO) build -o bin/ ./test/bench/cmd/soak
	$(WITH_ASSETS) bin/soak -duration '$(or $(SOAK),10m)' $(if $(SEED),-seed $(SEED)) $(if $(FAULTS),-faults=$(FAULTS)) $(if $(FLEET),-fleet=$(FLEET))

.PHONY: bench-micro
bench-micro: ## Run the benchmarks of single functions (BENCH=regexp).
	$(call on,bench,$(GO) test -vet=off -short -run=NoTests -bench '$(or $(BENCH),.)' -benchmem -p 1 -timeout 60m)
	cd test/helmparity && GOWORK=off $(GO) test -vet=off -run=NoTests -bench '$(or $(BENCH),.)' -benchmem

.PHONY: bench-browser
bench-browser: assets ## Measure how quick the page of corbel ui is in a real browser.
	cd test/browser && $(WITH_ASSETS) $(GO) test -vet=off -run=NoTests -bench . -benchtime 1x -timeout $(LIVE_TIMEOUT) .

.PHONY: bench-compare
bench-compare: bin/tools/benchstat ## Compare the benchmarks of single functions with those of a revision (BASE=main, COUNT=6, BENCH=regexp).
	COUNT='$(COUNT)' BENCH='$(BENCH)' GO='$(GO)' hack/bench-compare.sh '$(BASE)'

.PHONY: adopt-charts
adopt-charts: assets bin/bench ## Install the charts of a folder with Helm, take the releases over, and give them back (CHARTS=folder; minutes).
	$(GO) build -o bin/ ./cmd/corbel
	$(WITH_ASSETS) CORBEL_ADOPT_CHARTS='$(abspath $(CHARTS))' CORBEL_HELM=$(CURDIR)/bin/bench-helm CORBEL=$(CURDIR)/bin/corbel \
		$(GOTEST) -v -run TestPublicChartsAreAdopted -timeout $(LIVE_TIMEOUT) ./test/e2e

.PHONY: scaffold-fleet
scaffold-fleet: assets ## Make operators of the charts in CHARTS=folder (LIMIT=100), with sub-charts of the git repositories in TREES=folder, and run N=20 of them on a control plane, CRASHES=5 of these with crashes.
	@$(WITH_ASSETS) $(GO) run ./cmd/corbel/hack/scaffoldfleet -charts "$(CHARTS)" -trees "$(TREES)" -limit $(or $(LIMIT),0) -rights $(or $(N),20) -crashes $(or $(CRASHES),5) -faults $(or $(FAULTS),0)

.PHONY: restore-fleet
restore-fleet: assets ## Back up and restore a component of each chart in CHARTS=folder in sixteen ways, or in those that match WAYS='empty.*no status'.
	@$(WITH_ASSETS) $(GO) run ./cmd/corbel/hack/restorefleet -charts "$(CHARTS)" -ways "$(WAYS)"

.PHONY: operator-fleet
operator-fleet: assets ## Let projects take over from the Helm operators in OPERATORS=folder, which run as the program OLD=helm-operator; minutes each.
	$(GO) build -o bin/ ./cmd/corbel
	@$(WITH_ASSETS) $(GO) run ./cmd/corbel/hack/operatorfleet -operators "$(OPERATORS)" -old "$(OLD)" -work "$(or $(WORK),bin/operatorfleet)" $(ARGS)

##@ Check

.PHONY: lint
lint: fmt-check vet staticcheck ## Check format, vet, staticcheck and the architecture.
	$(GOTEST) ./test/architecture
	@$(GO) run ./hack/face | tail -n 2

.PHONY: fmt
fmt: ## Format all Go sources.
	@$(GOFMT) -w $$(hack/sources.sh)

.PHONY: fmt-check
fmt-check:
	@unformatted=$$($(GOFMT) -l $$(hack/sources.sh)) && \
	[ -z "$$unformatted" ] || { printf 'not formatted, run make fmt:\n%s\n' "$$unformatted"; exit 1; }

.PHONY: vet
vet:
	GO='$(GO)' hack/modules.sh vet

.PHONY: staticcheck
staticcheck: bin/tools/staticcheck
	hack/modules.sh staticcheck

.PHONY: verify
verify: ## Check that generated files and go.mod are up to date, then lint.
	hack/verify-generated.sh
	GO='$(GO)' hack/modules.sh tidy
	@$(MAKE) --no-print-directory lint controlplane-vet

##@ Build

.PHONY: generate
generate: bin/tools/controller-gen ## Write DeepCopy methods, custom resource definitions and docs/reference.
	GO='$(GO)' hack/generate.sh

# The pinned tools live in a module of their own, so that users of Corbel do not
# get their dependencies. All are built at once.
bin/tools/controller-gen: hack/tools/go.mod hack/tools/go.sum
	@mkdir -p bin/tools
	cd hack/tools && $(GO) build -o $(CURDIR)/bin/tools/ tool
	@touch $@

bin/tools/staticcheck bin/tools/benchstat: bin/tools/controller-gen

# Builds the control plane unless the user's own suffices.
.PHONY: assets
assets: $(if $(ASSETS),,controlplane)

# The first project builds a control plane of its own, unless KUBEBUILDER_ASSETS is set, as it does for users.
.PHONY: rehearse
rehearse: assets ## Rehearse a release: install the command from packed modules, make a project, test and run it, check go.mod of cmd/corbel, and upgrade an operator of an earlier version (minutes).
	GO='$(GO)' hack/rehearse.sh
	GO='$(GO)' $(WITH_ASSETS) hack/rehearse-upgrade.sh

bin/dist-tool: FORCE
	@mkdir -p bin
	@cd cmd/corbel/hack/dist && $(GO) build -o $(CURDIR)/$@ .

.PHONY: dist
dist: bin/dist-tool ## Build the files of the release that is checked out, and images, into bin/dist (PLATFORMS=linux/amd64,...; minutes for each).
	@rm -rf bin/dist
	GO='$(GO)' bin/dist-tool $(if $(PLATFORMS),-platforms '$(PLATFORMS)') $(if $(VERSION),-version '$(VERSION)') bin/dist

.PHONY: release
release: ## Tag the modules for VERSION=v1.2.3 in this clone, and print what to push.
	@hack/release.sh '$(VERSION)'

.PHONY: clean
clean: ## Remove everything that was built.
	rm -rf bin
