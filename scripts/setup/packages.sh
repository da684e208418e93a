#!/usr/bin/env bash
# packages.sh PURPOSE: makes sure that this machine has what PURPOSE (run, or one
# of packages.list) needs. As root it installs missing Debian packages; else it
# says exactly which are missing, how to install them, and exits 1.
#
# packages.sh rdma: the same for what iSER needs to be built in; without it the
# build goes on, so it says what is missing and exits 0.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
readonly here
readonly list=$here/packages.list

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# purposes, one a line; what runs needs no more than what is built.
purposes() { awk 'BEGIN { print "run" } /^[a-z]/ && !seen[$1]++ { print $1 }' "$list"; }

# wanted PURPOSE: its packages; every purpose needs those of build as well.
wanted() {
	awk -v purpose="$1" '$1 == purpose || $1 == "build" { if (!seen[$2]++) print $2 }' "$list"
}

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing() {
	local package
	for package in $(wanted "$1"); do
		installed "$package" || printf '%s\n' "$package"
	done
}

check_go() {
	local need have
	need=$(awk '$1 == "go" { print $2; exit }' "$here/../../go.mod")
	command -v go >/dev/null ||
		die "no 'go' in PATH; Go $need or later is needed (https://go.dev/dl/, unpack it and add its bin directory to PATH)"
	have=$(cd / && GOTOOLCHAIN=local go env GOVERSION)
	have=${have#go}
	have=${have%% *}
	[ "$(printf '%s\n' "$need" "$have" | sort -V | head -n 1)" = "$need" ] ||
		die "found Go $have, expected $need or later (https://go.dev/dl/)"
}

apt() {
	DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 "$@"
}

# known PACKAGE...: whether apt's present lists offer all of them.
known() {
	local package
	for package in "$@"; do
		[ -n "$(apt-cache policy "$package" 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)"')" ] || return 1
	done
}

# install_packages refreshes the lists when they do not know a package, or when
# what they know is no longer on the mirror.
install_packages() {
	say "installing $*"
	known "$@" || apt update >&2
	apt install --no-install-recommends "$@" >&2 && return
	apt update >&2
	apt install --no-install-recommends "$@" >&2
}

# optional PURPOSE installs what can be installed, and says what is left out.
optional() {
	local packages how
	mapfile -t packages < <(missing "$1")
	[ ${#packages[@]} -gt 0 ] || return 0
	[ "$(id -u)" = 0 ] && (install_packages "${packages[@]}") && return 0
	how="sudo apt-get update && sudo apt-get install --no-install-recommends -y ${packages[*]}"
	say "WITHOUT iSER: not installed: ${packages[*]}; for iSER run: $how"
}

main() {
	local purpose=${1:-} packages
	purposes | grep -qxF -e "$purpose" || die "found purpose '$purpose', expected one of:" $(purposes)
	[ "$purpose" != rdma ] || { optional rdma; return; }
	check_go
	mapfile -t packages < <(missing "$purpose")
	[ ${#packages[@]} -gt 0 ] || return 0
	if [ "$(id -u)" != 0 ]; then
		say "$purpose needs these Debian packages, which are not installed: ${packages[*]}"
		die "run: sudo apt-get update && sudo apt-get install --no-install-recommends -y ${packages[*]}"
	fi
	install_packages "${packages[@]}" || die "apt-get could not install: ${packages[*]}"
}

main "$@"
