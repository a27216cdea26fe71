#!/bin/sh
# Everything that is judged without running the program. Goes through all checks and fails at the end, so that one run
# shows all there is to mend. LINT_NOTES, where set, gets a line for each check that could not be made.
set -u
cd "$(dirname "$0")/.."
bad=0
tags=e2e,record # the tests on the real client, and the recording of what it writes
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

check() { # name, command…: quiet when it passes
	name=$1
	shift
	if "$@" >"$scratch/out" 2>&1; then
		echo "lint: ok   $name"
	else
		echo "lint: FAIL $name"
		cat "$scratch/out"
		bad=1
	fi
}

tool() { go tool -modfile=tools/go.mod "$@"; }

formatted() {
	gofmt -l . >"$scratch/unformatted" || return 1
	cat "$scratch/unformatted"
	[ ! -s "$scratch/unformatted" ]
}

# The tool is built for this machine and then looks at the other system's files.
staticcheck_on() { GOOS=$1 "$(tool -n staticcheck)" -tags "$tags" ./...; }

vulnerabilities() {
	tool govulncheck ./... >"$scratch/vuln" 2>&1
	status=$?
	if [ "$status" -ne 0 ] && grep -q 'fetching vulnerabilities' "$scratch/vuln"; then
		note="govulncheck: its vulnerability data cannot be had from here"
		echo "lint: left out: $note"
		[ -z "${LINT_NOTES-}" ] || echo "$note" >>"$LINT_NOTES"
	elif [ "$status" -ne 0 ]; then
		echo "lint: FAIL govulncheck"
		cat "$scratch/vuln"
		bad=1
	else
		echo "lint: ok   govulncheck"
	fi
}

check gofmt formatted
for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
	check "go vet $target" env CGO_ENABLED=0 GOOS="${target%/*}" GOARCH="${target#*/}" go vet -tags "$tags" ./...
done
check "staticcheck linux" staticcheck_on linux
check "staticcheck darwin" staticcheck_on darwin
check "go mod tidy" go mod tidy -diff
for script in install.sh tools/*.sh; do
	check "sh -n $script" sh -n "$script"
done
check "bash -n .ci/run" bash -n .ci/run
vulnerabilities
exit "$bad"
