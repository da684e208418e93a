# Lunar. `make` alone lists the targets.

# The server is one module, what measures, breaks and simulates it another, in scripts:
# the server needs none of their libraries.
GO         ?= go
BUILD      := build
VERSION    := $(shell git describe --tags --always --dirty 2>/dev/null || echo unversioned)
LDFLAGS    := -X main.version=$(VERSION) -X lunar/internal/version.Number=$(VERSION)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.1.4
FUZZTIME   ?= 5s
STRESS     ?= 20
SETUP      := scripts/setup/packages.sh

# The tag rdma, with which iSER is built in, where the headers of the RDMA
# libraries and a C compiler are. The shell asks for it when a line runs, within
# double quotes: make expands a recipe before its first line has run, and that may
# be the setup that installs the headers.
RDMA       := $$(printf '\043include <infiniband/verbs.h>\n\043include <rdma/rdma_cma.h>\n' | $(CC) -E -o /dev/null - 2>/dev/null && echo rdma)

# The tag rbd, with which images of Ceph are built in, where there is a C compiler:
# librbd is opened at run time, and its headers are not needed.
RBD        := $$(echo 'int x;' | $(CC) -x c -fsyntax-only - 2>/dev/null && echo rbd)
TAGS       := $(RDMA) $(RBD)

# Arguments of `make run`, such as ARGS="-c conf/tgtd.yaml --log-level debug".
ARGS       ?=

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run build etcd lab-etcd dist test setup vet lint vulncheck unit race whole stress fuzz conformance lab bench bench-disk bench-cache bench-qos bench-iser evidence-reliability evidence-security evidence-tests evidence-structure evidence-operate evidence-packages evidence-latency evidence-bulk evidence-network evidence-see evidence-snapshots evidence-simulation evidence-rbd evidence-cluster evidence-failover evidence-promises evidence-multipath lab-ceph simulation simulation-page clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build and serve (installs missing packages as root, else names them)
	@$(SETUP) run
	@$(MAKE) --no-print-directory build
	@exec $(BUILD)/tgtd serve $(ARGS)

build: ## build tgtd, lunar, tgtload and tgtsim into build/ (with iSER where its headers are or can be installed, with RBD where there is a C compiler)
	@$(SETUP) rdma
	@mkdir -p $(BUILD)
	$(GO) build -tags "$(TAGS)" -ldflags '$(LDFLAGS)' -o $(BUILD)/ ./cmd/...
	$(GO) -C scripts build -ldflags '$(LDFLAGS)' -o $(abspath $(BUILD))/ ./tgtsim

# A first build of its modules takes a minute of CPU time: `make test` does without.
etcd: ## build lunar-etcd, which nodes of a cluster need, into build/
	@mkdir -p $(BUILD)
	CGO_ENABLED=0 $(GO) -C cluster/lunar-etcd build -trimpath -ldflags '$(LDFLAGS)' -o $(abspath $(BUILD))/ .

# ARCHITECTURES=amd64 FORMATS=deb is a part, VERSION=1.2.3 another version.
dist: ## make packages (deb and rpm, amd64 and arm64) and a container image in build/dist/
	@$(SETUP) dist
	GO="$(GO)" scripts/dist/dist.sh

test: setup vet lint vulncheck race whole simulation conformance lab ## everything: vet, lint, unit tests with -race, conformance, qemu-img, VM lab
	@echo "make test: all passed"

setup:
	@$(SETUP) test

vet: ## go vet
	$(GO) vet -tags "$(TAGS)" ./...
	$(GO) -C scripts vet -tags "$(TAGS)" ./...

lint: ## gofmt, staticcheck, unused modules, licenses, and the project's own rules
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not gofmt'ed:"; echo "$$unformatted"; exit 1; }
	$(GO) mod tidy -diff
	$(GO) -C scripts mod tidy -diff
	$(GO) run $(STATICCHECK) -tags "$(TAGS)" ./...
	$(GO) -C scripts run $(STATICCHECK) -tags "$(TAGS)" ./...
	$(GO) test ./internal/lint

vulncheck: ## known vulnerabilities that the code reaches, where the database can be had
	@scripts/setup/vulncheck.sh "$(GO)" $(GOVULNCHECK) "$(TAGS)"

unit: ## unit tests
	$(GO) test -tags "$(TAGS)" ./...
	$(GO) -C scripts test -tags "$(TAGS)" ./...

# internal/lint looks at sources, and has by then: `lint`; so has `vet`. daemon's tests mostly wait, for
# leases and for programs: they run beside the others, in two halves. Of those the longest begin first,
# or they would run alone at the end. A program that ends waits for races of its other threads: 1 s, if
# it is not told otherwise, in each of 180 packages and in each program that their tests start.
race: export GORACE := atexit_sleep_ms=50
race: RACE = test -race -vet=off -timeout 25m -tags "invariants $(TAGS)"
race: ## unit tests with the race detector and the invariants that production leaves out
	@failed=0; trap 'kill $$first $$second; exit 1' INT TERM; \
	$(GO) $(RACE) -run '^Test[A-L]' ./daemon & first=$$!; \
	$(GO) $(RACE) -skip '^Test[A-L]' ./daemon & second=$$!; \
	$(GO) $(RACE) ./target ./target/scsi ./control/server ./iser $$($(GO) list ./... | grep -v 'internal/lint$$\|^lunar/daemon$$') || failed=1; \
	wait $$first || failed=1; wait $$second || failed=1; exit $$failed
	$(GO) -C scripts $(RACE) ./...

# internal/racetest marks them.
whole: ## the tests that do less with the race detector, without it
	$(GO) test -vet=off -tags "invariants $(TAGS)" $$(grep -rl --include='*_test.go' --exclude-dir=scripts '"lunar/internal/racetest"' . | xargs dirname | sort -u)

simulation: ## the papers' experiments in virtual time, reduced, with and without each decision of the server's
	$(GO) -C scripts test -tags invariants -timeout 40m ./tgtsim

simulation-page: ## write the tables of docs/reports/simulation.md
	$(GO) -C scripts run ./tgtsim page $(abspath docs/reports/simulation.md)

evidence-simulation: ## the same at full size, into docs/reports/simulation.txt
	$(GO) -C scripts run ./tgtsim run all > docs/reports/simulation.txt

stress: ## unit tests of the concurrent packages again and again
	$(GO) test -race -timeout 60m -tags "invariants $(TAGS)" -count $(STRESS) -cpu 1,2,4 ./internal/... ./backstore/... ./iser/... ./target/

fuzz: ## every fuzz target for FUZZTIME (5s)
	@grep -rl --include=*_test.go '^func Fuzz' . | sort | while read -r file; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(.*/\1/p' "$$file"); do \
			echo "== $$(dirname "$$file") $$target"; \
			$(GO) -C "$$(dirname "$$file")" test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x . || exit 1; \
		done; \
	done

conformance: build ## libiscsi's conformance suite, qemu-img and fio against tgtd
	scripts/conformance/run.sh
	scripts/conformance/qemu-img.sh
	scripts/conformance/fio.sh

lab: build ## Debian's kernel and open-iscsi in a VM against tgtd
	scripts/lab/run.sh

lab-ceph: ## the store of RBD on a Ceph cluster of this host, of Debian's packages
	@$(SETUP) ceph
	GO="$(GO)" scripts/lab/ceph/run.sh

lab-etcd: ## the cluster's state on members of etcd that are killed, stopped, filled up, joined and removed
	$(GO) -C cluster/lunar-etcd mod tidy -diff
	CGO_ENABLED=0 $(GO) -C cluster/lunar-etcd vet -trimpath ./...
	CGO_ENABLED=0 $(GO) -C cluster/lunar-etcd test -trimpath ./...

bench: build ## compare with a bare echo and C tgt, write docs/reports/performance.md
	@$(SETUP) bench
	scripts/bench/run.sh

bench-disk: build ## compare with fio and C tgt on a disk, write docs/reports/performance-disk.md
	@$(SETUP) bench
	scripts/bench/run.sh disk

bench-cache: build ## measure the parts of the cache, write docs/reports/performance-cache.md
	@$(SETUP) bench
	scripts/bench/run.sh cache

bench-qos: build ## the papers' experiments on the token scheduler, write docs/reports/qos.md
	@$(SETUP) bench
	scripts/bench/run.sh qos full

bench-iser: build ## compare with C tgt and LIO over RDMA in the lab's guest, write docs/reports/performance-iser.md
	scripts/bench/run.sh iser

# Rounds of evidence-reliability: POINTS=100 KILLS=10 CUTS=10 EXT4=10 FLIPS=50 CONFIGURATIONS=50
# is a short run, NOTES=FILE notes elsewhere, ONLY=flips is a part.
evidence-reliability: build ## break tgtd by kills, power cuts and flipped bits, write docs/reports/reliability.md
	@$(SETUP) test
	scripts/evidence/run.sh

# ONLY=half,copy are some of the attacks; PHASES=9 SECONDS_EACH=10 watches longer, MINUTES=10
# fuzzes for so long with each grammar, SCALE=1 measures 1,000 sessions; NOTES=FILE TGTD=FILE
# notes another binary's results elsewhere.
evidence-security: build ## attack tgtd with a canary beside it, write docs/reports/security-evidence.md
	@$(SETUP) test
	scripts/evidence/security/run.sh

# VOLUMES=100 CHANGES=200 is a short run, NOTES=FILE TO=FILE note elsewhere, ONLY=stall is a part.
evidence-operate: build ## change many objects, fill disks, drive the API beside I/O, migrate, write docs/reports/operate.md
	scripts/evidence/operate/run.sh

# ROUNDS=2 SUITES=race is a short run; CORE and BUSY say where, and with how much company.
evidence-tests: ## run the test suites again and again on one busy CPU, write docs/reports/tests.md
	@$(SETUP) test
	scripts/evidence/tests.sh

# BEFORE=97b87bb measures another commit and notes it as what was before.
evidence-structure: ## measure files, packages and the walks of commands, write docs/internals/structure.md
	scripts/structure/run.sh

evidence-latency: ## reads beside writes on throttled stores, mirrored and with writes in excess, into docs/reports/latency.md
	$(GO) -C scripts run ./evidence/latency > docs/reports/latency.md

# ONLY=kills,memory,disk,staged is a part, ROUNDS=1 KILLS=10 MIB=128 a short run. The Debian package of
# sshd, which this installs, starts one of the machine's: the one that is measured is another.
evidence-bulk: build ## move volumes between two servers beside scp and rsync, and amid kills, into docs/reports/bulk-moves.md
	@$(SETUP) moves
	$(GO) -C scripts build -o $(abspath $(BUILD))/evidence-bulk ./evidence/bulk
	$(BUILD)/evidence-bulk $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(KILLS),--kills $(KILLS)) $(if $(MIB),--mi-b $(MIB))

evidence-network: build ## share a bottleneck of the network by class, here and in the lab's guest, write docs/reports/network-classes.md
	rm -f $(BUILD)/network $(BUILD)/network.loads
	SAMPLES=$(BUILD)/network scripts/bench/network.sh 2 10 >$(BUILD)/network-classes.md
	LAB_ARGUMENTS="8 12 3" scripts/lab/run.sh network-classes
	SAMPLES=$(BUILD)/network RECEIVERS=ecn GUEST="$(BUILD)/lab/39-network-classes@network/guest.log" scripts/bench/network.sh 2 10 >$(BUILD)/network-classes.md
	mv $(BUILD)/network-classes.md docs/reports/network-classes.md

# ROUNDS=1 goes up and down in version once; PAGE=only writes the page of the last run's logs.
# ONLY=figures is a part, ROUNDS and PAGES are those of the check of pages.
# ONLY=xfs,btrfs,rollbacks,clones,pauses,space is a part, SNAPSHOTS=100 a short run. Needs root.
evidence-snapshots: build ## snapshots under load with kills, clones, pauses, space, into docs/reports/snapshots.md
	@$(SETUP) snapshots
	$(GO) -C scripts build -o $(abspath $(BUILD))/evidence-snapshots ./evidence/snapshots
	$(BUILD)/evidence-snapshots $(if $(ONLY),--only $(ONLY)) $(if $(SNAPSHOTS),--snapshots $(SNAPSHOTS))

evidence-see: build ## look at the web page of a server under load in a browser, write docs/reports/see.md
	@$(SETUP) see
	scripts/evidence/see/run.sh

# ONLY=speed or ONLY=kills is a part.
evidence-rbd: build ## a Ceph cluster of this host beside rbd bench, and with OSDs killed under load, into docs/reports/rbd.md
	@$(SETUP) ceph
	$(GO) -C scripts build -tags rbd -o $(abspath $(BUILD))/evidence-rbd ./evidence/rbd
	$(BUILD)/evidence-rbd $(if $(ONLY),--only $(ONLY)) --lab $(abspath scripts/lab/ceph/cluster.sh) --tgtd $(BUILD)/tgtd

# ONLY=one,three,leaders,leases is a part, KILLS=5 a short run.
evidence-cluster: etcd ## the state of a cluster of servers: commits, kills of etcd's leader, ends of leases, into docs/reports/cluster.md
	$(GO) -C scripts build -o $(abspath $(BUILD))/evidence-cluster ./evidence/cluster
	$(BUILD)/evidence-cluster --lunar-etcd $(BUILD)/lunar-etcd $(if $(ONLY),--only $(ONLY)) $(if $(KILLS),--kills $(KILLS))

# ONLY=move,kill,... is a part (scripts/evidence/failover), ARGS="--kills 100 --stops 100" is longer.
# Root cuts servers off as well.
evidence-failover: build etcd ## three servers of one volume on a Ceph cluster of this host, moved, killed, stopped and cut off under load, into docs/reports/failover.md
	@$(SETUP) ceph
	$(GO) -C scripts build -o $(abspath $(BUILD))/evidence-failover ./evidence/failover
	$(BUILD)/evidence-failover $(ARGS) $(if $(ONLY),--only $(ONLY)) --lab $(abspath scripts/lab/ceph/cluster.sh) --bin $(abspath $(BUILD))

# ONLY=moving,kill,stop is a part, ARGS="--moves 6 --rounds 1" is shorter.
evidence-promises: build etcd ## a reservation and limits over three servers of one volume on a Ceph cluster of this host, while demand moves and servers die, into docs/reports/promises.md
	@$(SETUP) ceph
	$(GO) -C scripts build -o $(abspath $(BUILD))/evidence-promises ./evidence/promises
	$(BUILD)/evidence-promises $(ARGS) $(if $(ONLY),--only $(ONLY)) --lab $(abspath scripts/lab/ceph/cluster.sh) --bin $(abspath $(BUILD))

# ARGS="--moves 2 --kills 2 --stops 1" is short; ARGS="--settings failback=manual" is another multipath.conf.
evidence-multipath: build etcd ## Linux' multipath in the lab's guest on three servers of one volume, moved, killed and stopped, into docs/reports/multipath.md
	@$(SETUP) test
	@$(SETUP) ceph
	@mkdir -p $(BUILD)/multipath
	$(GO) -C scripts build -o $(abspath $(BUILD))/evidence-multipath ./evidence/multipath
	CGO_ENABLED=0 $(GO) -C scripts build -o $(abspath $(BUILD))/multipath/guest ./evidence/multipath/guest
	$(BUILD)/evidence-multipath $(ARGS) --lab $(abspath scripts/lab/ceph/cluster.sh) --bin $(abspath $(BUILD)) --run $(abspath scripts/lab/run.sh) --guest $(abspath $(BUILD)/multipath) --logs $(abspath $(BUILD)/lab-multipath) >$(BUILD)/multipath.md
	mv $(BUILD)/multipath.md docs/reports/multipath.md

evidence-packages: build ## install, upgrade and remove the packages under systemd in the lab, write docs/reports/packages.md
	@$(SETUP) test
	@$(SETUP) dist
	@$(SETUP) elsewhere
	scripts/evidence/operate/packages.sh

clean: ## remove what was built
	rm -rf $(BUILD)
