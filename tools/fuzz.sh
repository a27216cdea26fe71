#!/bin/sh
# Runs every fuzz target of the module for FUZZTIME each. The targets are asked of the test binaries, so that a new one
# needs no entry anywhere; a package that does not compile, and finding no target at all, are failures.
set -u
cd "$(dirname "$0")/.."
time=${FUZZTIME:-30s}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# `go test -list` prints a package's targets and then "ok <package> <time>".
go test -list '^Fuzz' ./... >"$scratch/list" || { cat "$scratch/list"; exit 1; }
awk '
	/^Fuzz/ { names[++n] = $1 }
	/^ok /  { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }' "$scratch/list" >"$scratch/targets"
if [ ! -s "$scratch/targets" ]; then
	echo "fuzz: no target found" >&2
	exit 1
fi

# Making what is interesting smaller takes a minute each if it may, and that is then all that happens.
fuzz() { # package, target
	{
		go test "$1" -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 1s 2>&1
		echo $? >"$scratch/status"
	} | tee "$scratch/log"
	return "$(cat "$scratch/status")"
}

# On a busy machine go test can run into its own deadline at the end of the time, which is no finding. Tried again, since
# an input that hangs looks the same.
late() { grep -q 'context deadline exceeded' "$scratch/log" && ! grep -q 'Failing input written' "$scratch/log"; }

passes() { # package, target
	for _ in 1 2 3; do
		fuzz "$1" "$2" && return 0
		late || return 1
		echo "fuzz: $2 ran into go test's own deadline"
	done
	return 1
}

bad=0
while read -r package name; do
	echo "fuzz: $package $name for $time"
	passes "$package" "$name" || bad=1
done <"$scratch/targets"
echo "fuzz: $(grep -c . "$scratch/targets") targets"
exit "$bad"
