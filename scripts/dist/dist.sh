#!/usr/bin/env bash
# dist.sh [DIRECTORY]: the packages and the container image of this commit, into DIRECTORY
# (build/dist). The same commit makes the same bytes, wherever and whenever it is built
# with the same Go and C compiler.
#
# Environment: VERSION (of the commit), ARCHITECTURES ("amd64 arm64"), FORMATS ("deb rpm
# oci"), PACKAGES ("lunar lunar-etcd": the latter is for nodes of a cluster, and its modules
# take most of a minute to build), GO (go).
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
readonly root
readonly out=$(realpath -m "${1:-$root/build/dist}")
readonly go=${GO:-go}
readonly architectures=${ARCHITECTURES:-amd64 arm64}
readonly formats=${FORMATS:-deb rpm oci}
readonly packages=${PACKAGES:-lunar lunar-etcd}
readonly nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4
cd "$root"

version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo unversioned)}
readonly version
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
DATE=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
export DATE

say() { printf 'dist: %s\n' "$*"; }

# package_version: the version as packages have it: it begins with a digit, and one that
# has no tag is older than all that have one.
package_version() {
	local text=${version#v}
	[[ $text = [0-9]*.* ]] || text=0~$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S).$text
	printf '%s\n' "${text//-/.}"
}

# compiler ARCHITECTURE: the C compiler for it; nothing: there is none.
compiler() {
	local triple=x86_64-linux-gnu
	[ "$1" != arm64 ] || triple=aarch64-linux-gnu
	if [ "$1" = "$($go env GOHOSTARCH)" ]; then echo "${CC:-cc}"; else command -v "$triple-gcc" || :; fi
}

# headers COMPILER: whether it finds those of the RDMA libraries.
headers() {
	printf '#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\n' | "$1" -E -o /dev/null - 2>/dev/null
}

# build ARCHITECTURE DIRECTORY [static]
build() {
	local cc cgo=0 tags=''
	cc=$(compiler "$1")
	if [ "${3:-}" != static ] && [ -n "$cc" ]; then
		cgo=1 tags=rbd
	fi
	if [ "${3:-}" = static ]; then
		:
	elif [ -n "$cc" ] && headers "$cc"; then
		tags+=,rdma
	else
		say "WITHOUT iSER: $1: no C compiler for it that finds infiniband/verbs.h and rdma/rdma_cma.h (scripts/setup/packages.sh dist)"
	fi
	mkdir -p "$2"
	CGO_ENABLED=$cgo CC=$cc GOOS=linux GOARCH=$1 GOFLAGS= GOTOOLCHAIN=local "$go" build -trimpath -tags "$tags" \
		-ldflags "-s -w -buildid= -X main.version=$version -X lunar/internal/version.Number=$version" -o "$2/" ./cmd/tgtd ./cmd/lunar
	[[ " $packages " = *' lunar-etcd '* ]] || return 0
	CGO_ENABLED=0 GOOS=linux GOARCH=$1 GOFLAGS= GOTOOLCHAIN=local "$go" -C cluster/lunar-etcd build -trimpath \
		-ldflags "-s -w -buildid= -X lunar/internal/version.Number=$version" -o "$2/" .
}

# static ARCHITECTURE: the directory with its programs that need nothing else, built once.
static() {
	[ -d "$work/static-$1" ] || build "$1" "$work/static-$1" static >&2
	echo "$work/static-$1"
}

# libc BINARY: the package that it needs.
libc() { if "$go" version -m "$1" | grep -q 'CGO_ENABLED=1'; then echo 'libc6 (>= 2.34)'; else echo passwd; fi; }

# manual DIRECTORY: man pages and completions, from programs that run here.
manual() {
	local program name native
	native=$(static "$($go env GOHOSTARCH)")
	for program in tgtd lunar; do
		name=lunar-tgtd
		[ "$program" = tgtd ] || name=$program
		"$go" -C scripts run ./dist/manual --program "$native/$program" --name "$name" \
			--date "$(LC_ALL=C date -u -d "@$SOURCE_DATE_EPOCH" '+%B %-d, %Y')" --version "$version" --out "$1"
		gzip -9n "$1/$name.8"
	done
}

# packages ARCHITECTURE FORMAT...
packages() {
	local format package files=$work/$1
	build "$1" "$files"
	cp -r "$work"/manual/* "$work/doc" "$files/"
	for format in "${@:2}"; do
		ZSH=/usr/share/zsh/vendor-completions
		[ "$format" = deb ] || ZSH=/usr/share/zsh/site-functions
		export ZSH
		for package in $packages; do
			ARCH=$1 FILES=$files LIBC=$(libc "$files/tgtd") PACKAGE_VERSION=$(package_version) \
				GOFLAGS= "$go" run "$nfpm" package -f "scripts/dist/nfpm-$package.yaml" -p "$format" -t "$out/" | sed 's/^/dist: /'
		done
	done
}

# image: static programs, for a container that has nothing else. They have no iSER.
image() {
	local arch programs tree roots=()
	for arch in $architectures; do
		tree=$work/image-$arch
		programs=$(static "$arch")
		mkdir -p "$tree"/{usr/bin,usr/libexec/lunar,etc/lunar,var/lib/lunar,run/lunar,tmp}
		cp "$programs/tgtd" "$tree/usr/libexec/lunar/tgtd"
		[ ! -e "$programs/lunar-etcd" ] || cp "$programs/lunar-etcd" "$tree/usr/libexec/lunar/lunar-etcd"
		cp "$programs/lunar" "$tree/usr/bin/lunar"
		install -m 640 scripts/dist/files/tgtd.yaml "$tree/etc/lunar/tgtd.yaml"
		chmod 700 "$tree/var/lib/lunar"
		chmod 1777 "$tree/tmp"
		roots+=(--root "$arch=$tree")
	done
	"$go" -C scripts run ./dist/image "${roots[@]}" --version "$version" --date "$DATE" --out "$out/lunar_$(package_version).oci.tar"
}

work=$(mktemp -d)
readonly work
trap 'rm -rf "$work"' EXIT
umask 022
rm -rf "$out"
mkdir -p "$out" "$work/manual"
packaged=" $formats "
packaged=${packaged/ oci / }
if [ -n "${packaged// /}" ]; then
	"$go" -C scripts run ./dist/pages --root "$root" --out "$work/doc"
	manual "$work/manual"
	for architecture in $architectures; do
		# shellcheck disable=SC2086 # a list
		packages "$architecture" $packaged
	done
fi
[[ " $formats " != *' oci '* ]] || image
(cd "$out" && sha256sum -- * >SHA256SUMS)
say "$out:"
cat "$out/SHA256SUMS"
