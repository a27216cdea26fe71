#!/bin/sh
# go test -race with its closing lines as they come, then every test that was skipped, with its reason. The log of what
# did not pass is printed when something failed. RACE_NOTES, where set, gets a line with the number of skipped tests.
set -u
cd "$(dirname "$0")/.."
export GORACE="atexit_sleep_ms=0 ${GORACE-}" # the tests start thousands of processes, and each would end a second later
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

{
	go test -race -v ./... 2>&1
	echo $? >"$scratch/status"
} | tee "$scratch/log" | grep --line-buffered -E '^(ok|FAIL|panic:|\?)[[:space:]]|^[[:space:]]*--- FAIL|^FAIL$'

status=$(cat "$scratch/status")
if [ "$status" -ne 0 ]; then
	echo "race: the log follows, without what passed"
	grep -Ev '^[[:space:]]*(=== (RUN|PAUSE|CONT|NAME)|--- PASS)' "$scratch/log"
fi
awk '
	/^[[:space:]]*--- SKIP/   { print "race:" reason; print "race: " $0; next }
	!/^[[:space:]]*(===|---)/ { reason = $0 }' "$scratch/log"
skipped=$(grep -c '^[[:space:]]*--- SKIP' "$scratch/log")
echo "race: $skipped skipped tests"
if [ "$skipped" -gt 0 ] && [ -n "${RACE_NOTES-}" ]; then
	echo "$skipped skipped tests, named above" >>"$RACE_NOTES"
fi
exit "$status"
