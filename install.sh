#!/bin/sh
# Installs vx into ~/.local/bin, where the Stop hook looks for it.
#
#   sh install.sh [--url URL]       or VX_INSTALL_URL=URL sh install.sh
#
# URL is the folder that a release's files are in: vx_<os>_<arch>.tar.gz and checksums.txt. The archive is checked
# against its SHA-256, unpacked and tried beside the old vx, and renamed over it: on any failure the old one stays.

set -eu

say() { printf '%s\n' "vx install: $*"; }

die() { # what, hint
	printf '%s\n' "vx install: $1" >&2
	[ -z "${2-}" ] || printf '%s\n' "hint: $2" >&2
	exit 1
}

usage() {
	printf '%s\n' 'usage: sh install.sh [--url URL]' \
		'Installs vx into ~/.local/bin from the release files at URL (or $VX_INSTALL_URL).'
}

have() { command -v "$1" >/dev/null 2>&1; }

system() {
	case $(uname -s) in
	Linux) printf linux ;;
	Darwin) printf darwin ;;
	*) die "$(uname -s): not supported; vx runs on Linux and macOS" ;;
	esac
}

machine() {
	case $(uname -m) in
	x86_64 | amd64) printf amd64 ;;
	aarch64 | arm64) printf arm64 ;;
	*) die "$(uname -m): no release for this processor" 'build it from a checkout: make install' ;;
	esac
}

# A checksum that came over an open line proves nothing, so anything but this machine has to be https.
check_url() {
	case $1 in
	*[!A-Za-z0-9:/._~%+=-]*) die "$1: not a plain URL" ;;
	https://?*) ;;
	http://127.0.0.1:* | http://localhost:*) ;;
	*) die "$1: not an https:// URL" ;;
	esac
}

fetch() { # url, file
	case $1 in https:*) only='=https' ;; *) only='=http' ;; esac
	if have curl; then
		curl --fail --silent --show-error --location --proto "$only" --retry 2 --max-time 300 --output "$2" "$1"
	elif have wget; then
		wget -q -T 60 -t 3 -O "$2" "$1"
	else
		die 'curl or wget: neither found'
	fi
}

sha256() { # file
	if have sha256sum; then
		sha256sum <"$1"
	elif have shasum; then
		shasum -a 256 <"$1"
	else
		die 'sha256sum or shasum: neither found'
	fi | { read -r sum _ && printf %s "$sum"; }
}

verify() { # archive's name, folder with it and checksums.txt
	wanted=$(awk -v name="$1" '$2 == name || $2 == "*" name { print $1; exit }' "$2/checksums.txt")
	[ -n "$wanted" ] || die "checksums.txt: does not name $1"
	got=$(sha256 "$2/$1")
	[ "$got" = "$wanted" ] || die "$1: SHA-256 is $got, want $wanted" 'nothing was installed; try again, and report it if it stays'
}

# What Claude Code's shell finds first is what the hook runs, so a vx elsewhere is worth a word.
report() { # folder, version
	say "$2 is in $1"
	case ":$PATH:" in
	*":$1:"*) ;;
	*) say "$1 is not on your PATH: add it in your shell's profile. The Stop hook finds vx there all the same." ;;
	esac
	other=$(command -v vx 2>/dev/null || :)
	case $other in
	'' | "$1/vx") ;;
	*) say "another vx comes first on your PATH: $other" ;;
	esac
	say 'next, in a project: vx init, then vx doctor'
}

clean() {
	[ -z "${work-}" ] || rm -rf "$work"
	[ -z "${new-}" ] || rm -f "$new"
}

main() {
	url=${VX_INSTALL_URL-}
	while [ $# -gt 0 ]; do
		case $1 in
		--url) [ $# -ge 2 ] || { usage >&2; exit 80; }; url=$2; shift 2 ;;
		--url=*) url=${1#--url=}; shift ;;
		-h | --help) usage; exit 0 ;;
		*) usage >&2; exit 80 ;;
		esac
	done
	[ -n "$url" ] || die 'VX_INSTALL_URL is not set, and vx has no published release to take' \
		'build it from a checkout: make install; or set VX_INSTALL_URL to the folder of the release files'
	url=${url%/}
	check_url "$url"
	case ${HOME-} in /*) ;; *) die 'HOME is not set' ;; esac

	os=$(system)
	arch=$(machine)
	archive=vx_${os}_${arch}.tar.gz
	bin=$HOME/.local/bin
	[ ! -d "$bin/vx" ] || die "$bin/vx: is a directory"
	trap clean EXIT
	trap 'exit 1' HUP INT TERM
	work=$(mktemp -d) || die 'no temporary directory'

	fetch "$url/checksums.txt" "$work/checksums.txt" || die "$url/checksums.txt: not downloaded"
	fetch "$url/$archive" "$work/$archive" || die "$url/$archive: not downloaded"
	verify "$archive" "$work"
	(cd "$work" && tar -xzf "$archive" vx) || die "$archive: holds no vx"
	[ -f "$work/vx" ] && [ ! -h "$work/vx" ] || die "$archive: vx in it is not a file"

	mkdir -p "$bin" || die "$bin: cannot be made"
	new=$(mktemp "$bin/.vx.XXXXXX") || die "$bin: cannot be written to"
	cp "$work/vx" "$new" && chmod 755 "$new" || die "$new: not written"
	version=$("$new" version </dev/null) || die "$archive: the vx in it does not run here"
	mv -f "$new" "$bin/vx" || die "$bin/vx: not replaced"
	report "$bin" "$version"
}

# The last line, so that a download that breaks off runs nothing.
main "$@"
