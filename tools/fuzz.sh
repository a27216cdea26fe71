#!/bin/sh
# Runs every fuzz target of the module for FUZZTIME each. The targets are asked of the test binaries, so that a new one
# needs no entry anywhere; finding none is a failure.
set -u
cd "$(dirname "$0")/.."
time=${FUZZTIME:-30s}

# `go test -list` prints a package's targets and then "ok <package> <time>".
targets=$(go test -list '^Fuzz' ./... | awk '
	/^Fuzz/ { names[++n] = $1 }
	/^ok /  { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }')
if [ -z "$targets" ]; then
	echo "fuzz: no target found" >&2
	exit 1
fi

bad=0
while read -r package name; do
	echo "fuzz: $package $name for $time"
	go test "$package" -run '^$' -fuzz "^$name\$" -fuzztime "$time" || bad=1
done <<LIST
$targets
LIST
exit "$bad"
