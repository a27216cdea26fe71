# Targets that a person runs. `make help` lists them; .ci/run puts them together.

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  := -s -w -X main.release=$(VERSION)
GOBUILD  := CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)'
BINDIR   ?= $(HOME)/.local/bin
FUZZTIME ?= 30s
SHORT    ?=
export FUZZTIME

.DEFAULT_GOAL := help
.PHONY: help build install demo test race e2e bench screens torture fuzz lint types fmt clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

build: ## ./vx
	@$(GOBUILD) -o vx ./cmd/vx

# Renamed over the old one: an await that runs from it goes on undisturbed, and no moment is without a vx.
install: ## vx in ~/.local/bin, where the hook looks for it
	@mkdir -p '$(BINDIR)'
	@$(GOBUILD) -o '$(BINDIR)/.vx.new' ./cmd/vx
	@mv -f '$(BINDIR)/.vx.new' '$(BINDIR)/vx'
	@echo 'vx $(VERSION) is in $(BINDIR)'
	@case ":$$PATH:" in *:'$(BINDIR)':*) ;; *) echo '$(BINDIR) is not on your PATH; the Stop hook looks in ~/.local/bin all the same' ;; esac

demo: build ## the main job on this machine, in a scratch HOME, in seconds
	@./vx demo

test: ## everything that needs no outside program
	@go test ./...
	@echo 'left out: the tests on the real clients (make e2e), the killing and failing disks at length (make torture), the fuzzing beyond its seeds (make fuzz)'

race: ## the same under the race detector, each skipped test named
	@tools/race.sh

# One package after the other: each has real clients that take the machine.
e2e: ## the real clients at their measured versions; needs Linux, tmux, npm
	go test -tags e2e -count=1 -p 1 -timeout 40m ./internal/e2e/...

bench: ## speed and memory, as ratios with their yardsticks
	@go run ./internal/bench

screens: ## what the recorded screens are taken for, as tables; SCREENS=DIR for others of that form
	@go test -count=1 -v -run '^TestNoScreenThatIsNotIdleIsCalledIdle$$' ./internal/screen

torture: ## kills and failing disks by the thousand; SHORT=1 for a few minutes of it
	@go run ./internal/torture $(if $(SHORT),-short)

fuzz: ## every fuzz target, FUZZTIME (30s) each
	@tools/fuzz.sh

lint: ## gofmt, go vet, staticcheck, govulncheck, go mod tidy
	@tools/lint.sh

types: ## what vx installs into other programs, against their types; needs npm
	@tools/types.sh

fmt: ## gofumpt over the tree
	@go tool -modfile=tools/go.mod gofumpt -w cmd hook install internal settings *.go

clean: ## remove what was built here
	@rm -rf vx dist
