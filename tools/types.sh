#!/bin/sh
# Type-checks the extensions that vx installs into other programs. What they are checked against is fetched by npm, as their
# lock files have it, into .cache; nothing is left beside the sources. Goes through all of them and fails at the end.
set -u
cd "$(dirname "$0")/.."
bad=0

# fetched says where the packages of an extension are: one folder for each state of its lock file.
fetched() {
	printf '.cache/types/%s-%s' "$(basename "$1")" "$(cat "$1/package.json" "$1/package-lock.json" | cksum | cut -d' ' -f1)"
}

# fetch installs beside the final place and renames: a run that is killed in the middle leaves no half of it.
fetch() { # extension, folder
	mkdir -p .cache/types && scratch=$(mktemp -d .cache/types/fetching-XXXXXX) || return 1
	cp "$1/package.json" "$1/package-lock.json" "$scratch" &&
		npm ci --prefix "$scratch" --ignore-scripts --no-audit --no-fund --loglevel=error &&
		{ [ -d "$2" ] || mv "$scratch" "$2"; }
	status=$?
	rm -rf "$scratch"
	return "$status"
}

for extension in install/extensions/*/; do
	extension=${extension%/}
	[ -f "$extension/tsconfig.json" ] || continue
	home=$(fetched "$extension")
	if { [ -d "$home" ] || fetch "$extension" "$home"; } &&
		cp "$extension"/*.ts "$extension/tsconfig.json" "$home" &&
		(cd "$home" && node_modules/.bin/tsc --project tsconfig.json); then
		echo "types: ok   $extension"
	else
		echo "types: FAIL $extension"
		bad=1
	fi
done
exit "$bad"
