# The list of commands; the pipeline calls the same ones.

CARGO ?= cargo
PORT ?= 8443
ADMIN_PORT ?= 8080

# The image that `make image` builds, its platforms and the program that builds it. podman and
# buildah have the same options; only docker builds for several platforms at once.
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
IMAGE ?= multi-attach-guard:$(VERSION)
PLATFORMS ?= linux/$(patsubst aarch64,arm64,$(patsubst x86_64,amd64,$(shell uname -m)))
DOCKER ?= docker
comma := ,

# The platforms of `make dist`. A program for macOS can be linked only with a macOS SDK.
DIST_PLATFORMS ?= linux/amd64 linux/arm64 windows/amd64 $(if $(SDKROOT),darwin/amd64 darwin/arm64)
# The targets that must compile besides the machine's own platform.
OTHER_TARGETS ?= x86_64-pc-windows-gnu aarch64-apple-darwin

# The output of `make run`.
RUN := target/run
.PHONY: help
help: ## List the commands
	@awk -F ': .*## ' '/^[a-z0-9-]+: .*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## Serve the webhook on this machine with the facts in examples/facts
	@$(CARGO) build --locked
	@mkdir -p $(RUN)
	@examples/announce $(PORT) $(RUN)/ca.pem
	@$(CARGO) run --locked --quiet -- serve --facts examples/facts \
		--listen 127.0.0.1:$(PORT) --admin 127.0.0.1:$(ADMIN_PORT) \
		--self-signed --write-ca $(RUN)/ca.pem --shutdown-delay 0s

# Two commands run the tests. `make test` is for a change: it needs cargo, Go and a C compiler, and
# checks rules, messages and readers with one Kubernetes version, the newest. `make test-all` is for
# the pipeline, and runs `make test` first.
#
# A suite is a test program: the unit tests, the documentation's examples, and each of tests/. Each
# writes a log and its duration to target/tests/. The number of API servers that run at once depends
# on the machine (tests/harness/places.rs), so suites with an API server start first.
FIRST := e2e scenarios unit check explorer serve informer https verdicts reader plain lsp doc
ALL_TESTS := $(patsubst tests/%.rs,%,$(wildcard tests/*.rs)) $(patsubst tests/%/main.rs,%,$(wildcard tests/*/main.rs))
# Suites that the first command runs only in part are run here in full or for the rest. The
# documentation comes last, because cargo blocks all others while it is written.
WHOLE := e2e scenarios check explorer
# As many suites with an API server can run as there are cores, and one suite more may run. Suites
# without one start together with the first two, so that none waits while another could run.
LONG := scenarios e2e check explorer kubernetes_sources playground diagnose oldest applying manifests faults admission_policies
REST := clippy deny $(LONG) $(filter-out $(LONG) $(filter-out $(WHOLE),$(FIRST)),$(ALL_TESTS)) rustdoc
TESTS := target/tests
SUITES_AT_ONCE ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

.PHONY: quick
quick: ## Tests of nearly every change, without a control plane, with what `make test` compiled
	$(CARGO) --locked test --workspace --no-fail-fast --lib --bins --test verdicts --test check --test plain

# What takes seconds comes before what is compiled.
.PHONY: test
test: fmt prose ## Tests of a change, on one Kubernetes (a quarter of an hour at first, then minutes)
	@rm -rf $(TESTS)/first
	@QUICK=1 SUITES="$(FIRST)" $(MAKE) --no-print-directory --keep-going --jobs=$(SUITES_AT_ONCE) $(FIRST:%=first-%); \
		status=$$?; tests/times $(TESTS)/first; exit $$status

.PHONY: test-all
test-all: ## All tests: `make test`, and then everything that it leaves out (an hour at first)
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory rest

.PHONY: rest
rest:
	@rm -rf $(TESTS)/rest
	@SUITES="$(REST)" $(MAKE) --no-print-directory --keep-going --jobs=$(SUITES_AT_ONCE) $(REST:%=rest-%); \
		status=$$?; tests/times $(TESTS)/first $(TESTS)/rest; exit $$status

.PHONY: times
times: ## Print the seconds of each suite that ran last, and how long it waited for its turn
	@tests/times $(TESTS)/first $(TESTS)/rest

# The Kubernetes minors that can be tested, for example 1.37. All suites run on the first, which is
# the newest; a third of the scenarios also runs on the oldest.
MINORS := $(shell sed 's/^v//; s/\.[0-9]*$$//' tests/control-plane/minors)
OLDEST := $(shell printf '%s\n' $(MINORS) | sort --version-sort | head -n 1)
ROWS := test --workspace --no-fail-fast --test scenarios -- --skip "random cluster" --skip fifty

# Everything is compiled at once, so that no suite waits for another one's compilation.
PROGRAMS := $(filter-out unit doc,$(FIRST))
.PHONY: first-compiled rest-compiled first-plane
first-compiled:
	$(CARGO) --locked test --workspace --no-run --lib --bins $(PROGRAMS:%=--test %)
# The page's program, too: beside API servers it would take ten times as long. Its suite reports a
# failure.
rest-compiled: rest-clippy
	$(CARGO) --locked test --workspace --no-run
	-@docs/site/playground/build $(TESTS)/page >/dev/null
first-plane:
	@tests/control-plane/build >/dev/null || [ $$? -eq 3 ]

first-% rest-%: command = $(CARGO) --locked test --workspace --no-fail-fast --test $*
first-unit: command = $(CARGO) --locked test --workspace --no-fail-fast --lib --bins
first-doc: command = $(CARGO) --locked test --workspace --no-fail-fast --doc
# All cases again, with the policies in the API server, take longer than the first time.
AGAIN := "every case |"
first-e2e: command = $(CARGO) --locked test --workspace --test e2e -- --skip $(AGAIN)
rest-e2e: command = $(CARGO) --locked test --workspace --test e2e -- $(AGAIN)
first-scenarios: command = env PLAY=first $(CARGO) --locked $(ROWS)
rest-scenarios: export PLAY ?= rest
rest-selinux: export PLAY ?= once
rest-oldest: command = env MINOR=$(OLDEST) PLAY=third $(CARGO) --locked $(ROWS)
rest-clippy: command = $(CARGO) --locked clippy --workspace --all-targets -- -D warnings
rest-deny: command = $(MAKE) --no-print-directory $*
rest-rustdoc: command = env RUSTDOCFLAGS="-D warnings" $(CARGO) --locked doc --workspace --no-deps

# The suites that need neither a control plane nor helm, and the prerequisites of each suite.
ALONE := unit doc explorer serve https verdicts plain lsp
$(FIRST:%=first-%): first-compiled
$(patsubst %,first-%,$(filter-out $(ALONE) check,$(FIRST))): first-plane
$(patsubst %,rest-%,$(filter-out clippy deny,$(REST))): rest-compiled
$(patsubst %,rest-%,$(filter-out $(ALONE) clippy deny playground rustdoc,$(REST))): control-plane

.PHONY: $(FIRST:%=first-%) $(REST:%=rest-%)
$(FIRST:%=first-%): first-%:
	@tests/suite $(TESTS)/first $* $(command)
$(REST:%=rest-%): rest-%:
	@tests/suite $(TESTS)/rest $* $(command)

.PHONY: lint
lint: fmt deny prose ## Check formatting, clippy, the pages, and the dependencies' licences and sources
	$(CARGO) clippy --workspace --locked --all-targets -- -D warnings

.PHONY: fmt
fmt:
	$(CARGO) fmt --all --check

.PHONY: deny
deny:
	@if command -v cargo-deny >/dev/null; then \
		$(CARGO) deny --locked check bans licenses sources; \
	elif [ -n "$$CI" ]; then \
		echo "cargo-deny is missing, and with CI set nothing is skipped. Install it: cargo install --locked cargo-deny@0.20.2" >&2; exit 1; \
	else \
		echo "SKIPPED: cargo deny is not installed. Install it: cargo install --locked cargo-deny@0.20.2" >&2; \
	fi

.PHONY: prose
prose: ## Check that the pages of docs/ and the program's texts are easy to read
	@if command -v python3 >/dev/null; then \
		docs/site/prose --test && docs/site/prose --table; \
	elif [ -n "$$CI" ]; then \
		echo "python3 is missing, and with CI set nothing is skipped." >&2; exit 1; \
	else \
		echo "SKIPPED: the pages and the program's texts were not read; python3 is missing." >&2; \
	fi

.PHONY: advisories
advisories: ## Fail on known vulnerabilities in the dependencies, if the database can be read
	@if $(CARGO) deny --locked fetch db; then \
		$(CARGO) deny --locked check --disable-fetch advisories; \
	else \
		echo "SKIPPED: the advisories were not read; the advisory database is out of reach (see above)." >&2; \
	fi

.PHONY: msrv
msrv: ## Compile with the oldest Rust that Cargo.toml promises, if it can be installed
	@.ci/msrv

.PHONY: targets
targets: ## Compile for Windows and macOS, as far as this works without their SDKs
	@.ci/targets $(OTHER_TARGETS)

.PHONY: reproducible
reproducible: ## Compile a release twice, in two folders, and compare the programs
	@.ci/reproducible

# Exit code 3 means that Go is missing. Tests that need the control plane are then reported as
# skipped, and fail with CI set.
.PHONY: control-plane
control-plane: ## Build the Kubernetes programs that tests start (minutes, once)
	@tests/control-plane/build $(firstword $(MINORS)) kubelets renderers >/dev/null || [ $$? -eq 3 ]
	@MINOR=$(OLDEST) tests/control-plane/build $(OLDEST) >/dev/null || [ $$? -eq 3 ]
	@tests/control-plane/build-appliers >/dev/null || [ $$? -eq 3 ]
	@for controller in rollouts keda; do \
		tests/control-plane/build-controller $$controller >/dev/null || [ $$? -eq 3 ] || exit 1; \
	done

.PHONY: scenarios
scenarios: control-plane ## Play the scenarios of docs/evidence/ground-truth.md (MINOR=1.30, PLAY=all, SEED=)
	PLAY=$${PLAY:-once} $(CARGO) --locked test --workspace --test scenarios

.PHONY: oldest
oldest: control-plane ## Play a third of them on the oldest Kubernetes (SEED=)
	MINOR=$(OLDEST) PLAY=third $(CARGO) --locked $(ROWS)

.PHONY: minors
minors: ## Play all scenarios on all minors of Kubernetes, with and without kubelets (hours)
	@for minor in $(MINORS); do \
		MINOR=$$minor PLAY=all $(CARGO) --locked $(ROWS) || failed="$$failed $$minor"; \
	done; test -z "$$failed" || { echo "Scenarios failed on$$failed."; exit 1; }

.PHONY: currency
currency: ## List the releases of Kubernetes that are newer than the tested ones
	@tests/control-plane/currency

.PHONY: explore
explore: control-plane ## Play 500 random clusters on a real control plane (CLUSTERS=, SEED=)
	CLUSTERS=$${CLUSTERS:-500} SEED=$${SEED:-$$(date +%s)} $(CARGO) --locked test --workspace --test scenarios -- "random cluster"

.PHONY: e2e
e2e: control-plane ## Test every kind, operation and verdict with a real API server and kubectl
	$(CARGO) --locked test --workspace --test e2e

# New inputs that reach more code are written to fuzz/target/found, and inputs that fail to
# fuzz/artifacts. There is no unsafe code that a sanitizer could check, and fuzzing is faster
# without it.
FUZZ := $(CARGO) +nightly fuzz
FUZZ_SECONDS ?= 60
.PHONY: fuzz
fuzz: ## Fuzz every reader for a minute (FUZZ_SECONDS=); needs nightly and cargo-fuzz
	@$(CARGO) +nightly --version >/dev/null 2>&1 || { \
		echo "Fuzzing needs a nightly compiler. Install it: rustup toolchain install nightly" >&2; exit 1; }
	@$(FUZZ) --version >/dev/null 2>&1 || { \
		echo "cargo-fuzz is missing. Install it: cargo install --locked cargo-fuzz" >&2; exit 1; }
	@for target in $$($(FUZZ) list); do \
		mkdir -p fuzz/target/found/$$target; \
		$(FUZZ) run --sanitizer none $$target fuzz/target/found/$$target fuzz/corpus/$$target -- \
			-max_total_time=$(FUZZ_SECONDS) -max_len=16384 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 || exit 1; \
	done

# The number of times that a branch is taken is ignored, because it would keep twice as many inputs.
.PHONY: fuzz-corpus
fuzz-corpus: ## Add the inputs of `make fuzz` that reach further to the corpus
	@for target in $$($(FUZZ) list); do \
		mkdir -p fuzz/target/found/$$target; \
		$(FUZZ) run --sanitizer none $$target fuzz/corpus/$$target fuzz/target/found/$$target -- \
			-set_cover_merge=1 -use_counters=0 || exit 1; \
	done

.PHONY: bench
bench: ## Measure the ratios that must stay low
	$(CARGO) bench --locked
	@docs/site/playground/build target/page
	node benches/page.mjs target/page

.PHONY: rules
rules: ## Write docs/rules.md and docs/storage.md from what the program knows
	@$(CARGO) build --locked
	$(CARGO) run --locked --quiet -- rules --markdown > docs/rules.md
	$(CARGO) run --locked --quiet -- capabilities --markdown > docs/storage.md

.PHONY: site
site: ## Build the documentation as pages in target/site/html and check them in a browser
	@docs/site/build target/site

.PHONY: page
page: ## Build the page on which a manifest is pasted, in target/page
	@docs/site/playground/build target/page

.PHONY: chart
chart: ## Write the chart's copies of manifests, its README and its list of changes
	manifests/chart/copy
	manifests/chart/readme > manifests/chart/README.md
	manifests/chart/changes

.PHONY: dist
dist: ## Build a release in target/dist (DOWNLOADS=https://… for package managers, SDKROOT= for macOS, COSIGN_KEY= to sign)
	.ci/compile --profiled $(DIST_PLATFORMS)
	rm -rf target/dist
	.ci/package target/dist $(foreach platform,$(DIST_PLATFORMS),$(wildcard target/programs/$(platform)/multi-attach-guard*))
	$(if $(COSIGN_KEY),.ci/sign target/dist)

.PHONY: release-dry-run
release-dry-run: ## Do what a release does, against a registry on this machine, in target/release-dry-run
	.ci/compile linux/amd64 linux/arm64
	.ci/renderers linux/amd64 linux/arm64
	.ci/release-dry-run target/release-dry-run

.PHONY: image
image: ## Build the image IMAGE= for this machine (PLATFORMS=linux/amd64,linux/arm64)
	.ci/compile $(subst $(comma), ,$(PLATFORMS))
	$(DOCKER) build --platform $(PLATFORMS) --tag $(IMAGE) \
		--build-arg VERSION=$(VERSION) --build-arg REVISION=$$(git rev-parse HEAD) $(TARGET) .

.PHONY: image-check
image-check: ## Build the image IMAGE=-check, which has helm and kustomize for `check`
	.ci/renderers $(subst $(comma), ,$(PLATFORMS))
	@$(MAKE) --no-print-directory image IMAGE=$(IMAGE)-check TARGET="--target check"
