#!/bin/sh
# go test -race with its closing lines, and every test that was skipped, with its reason. The whole log is printed when
# something failed. RACE_NOTES, where set, gets a line with the number of skipped tests.
set -u
cd "$(dirname "$0")/.."
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

{
	go test -race -v ./... 2>&1
	echo $? >"$scratch/status"
} | tee "$scratch/log" | awk '
	/^[[:space:]]*--- SKIP/               { print reason; print; next }
	/^(ok|FAIL|panic:|\?)[[:space:]]/     { print }
	/^[[:space:]]*--- FAIL|^FAIL$/        { print }
	!/^[[:space:]]*(===|---)/             { reason = $0 }'

skipped=$(grep -c '^[[:space:]]*--- SKIP' "$scratch/log")
status=$(cat "$scratch/status")
if [ "$status" -ne 0 ]; then
	echo "race: the whole log follows, without what passed"
	grep -Ev '^[[:space:]]*(=== (RUN|PAUSE|CONT|NAME)|--- PASS)' "$scratch/log"
fi
if [ "$skipped" -gt 0 ] && [ -n "${RACE_NOTES-}" ]; then
	echo "$skipped skipped tests, named above" >>"$RACE_NOTES"
fi
exit "$status"
