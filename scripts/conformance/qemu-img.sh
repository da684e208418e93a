#!/usr/bin/env bash
# qemu-img.sh: an independent client, qemu's block layer over libiscsi, writes,
# compares, converts and checks images over iscsi://.
#
# qemu-img.sh --url URL: the same against a target that runs already; the
# logical unit is overwritten and must have at least 128 MiB.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
. "$here/server.bash"
trap clean_up EXIT

passed=0

# step TEXT COMMAND...: the command must succeed within three minutes.
step() {
	local text=$1
	shift
	if ! timeout 180 "$@" >"$work/output" 2>&1; then
		sed 's/^/    /' "$work/output" >&2
		die "qemu-img: FAILED: $text: $*"
	fi
	passed=$((passed + 1))
}

# io_step TEXT COMMAND...: qemu-io commands, all of which must succeed. Old
# versions of qemu-io report a failed read pattern with status 0.
io_step() {
	local text=$1 url=$2 command arguments=()
	shift 2
	for command; do arguments+=(-c "$command"); done
	step "$text" qemu-io -f raw "${arguments[@]}" "$url"
	! grep -qiE 'fail|error|invalid' "$work/output" || { cat "$work/output" >&2; die "qemu-img: FAILED: $text"; }
}

# size_of URL, in bytes.
size_of() { qemu-img info --output=json -f raw "$1" | awk -F '[:,]' '/virtual-size/ { print $2 + 0 }'; }

# make_images SIZE writes a raw image with data, zeroes and holes, and a qcow2
# one of the same contents.
make_images() {
	truncate -s "$1" "$work/raw"
	dd if=/dev/urandom of="$work/raw" bs=1M count=24 conv=notrunc status=none
	dd if=/dev/urandom of="$work/raw" bs=4096 seek=10001 count=1000 conv=notrunc status=none
	dd if=/dev/zero of="$work/raw" bs=1M seek=60 count=8 conv=notrunc status=none
	qemu-img convert -f raw -O qcow2 "$work/raw" "$work/qcow2"
}

# examine URL
examine() {
	local url=$1 size
	size=$(size_of "$url")
	[ "${size:-0}" -ge $((128 << 20)) ] || die "qemu-img: found a logical unit of ${size:-unknown} bytes, expected at least 128 MiB"
	make_images "$size"
	step "write a raw image" qemu-img convert -n -f raw -O raw "$work/raw" "$url"
	step "compare it" qemu-img compare -f raw -F raw "$work/raw" "$url"
	step "read it back" qemu-img convert -f raw -O raw "$url" "$work/back"
	step "compare every byte" cmp "$work/raw" "$work/back"
	step "write a qcow2 container" qemu-img convert -n -f raw -O raw "$work/qcow2" "$url"
	step "check the container" qemu-img check -f qcow2 "$url"
	step "compare its contents" qemu-img compare -f qcow2 -F raw "$url" "$work/raw"
	io_step "write patterns" "$url" "write -P 0xa5 0 1M" "write -P 0x5a 1M 64k" "write -f -P 0x11 2M 4k" "flush" \
		"read -P 0xa5 0 1M" "read -P 0x5a 1M 64k" "read -P 0x11 2M 4k"
	io_step "read them in a new session" "$url" "read -P 0xa5 0 1M" "read -P 0x5a 1M 64k" "read -P 0x11 2M 4k"
	io_step "write zeroes and discard" "$url" "write -z 256k 256k" "write -z -u 1M 32k" "discard 512k 128k" "flush" \
		"read -P 0xa5 0 256k" "read -P 0 256k 256k" "read -P 0 1M 32k" "read -P 0x5a 1056k 32k" "read -P 0xa5 640k 384k"
	io_step "vectors" "$url" "writev -P 0x77 4M 4k 8k 512 1M" "readv -P 0x77 4M 512 64k 4k"
	io_step "asynchronous" "$url" "aio_write -P 0x21 8M 1M" "aio_write -P 0x22 9M 1M" "aio_flush" "read -P 0x21 8M 1M" "read -P 0x22 9M 1M"
}

main() {
	local port
	if [ "${1-}" = --url ]; then
		examine "$2"
	else
		port=$(free_port)
		make_config "$port"
		start_server "$work/config.yaml" "$port"
		examine "iscsi://127.0.0.1:$port/iqn.2026-11.example.conformance:image/0"
		stop_server
	fi
	say "qemu-img: $passed steps passed, 0 failed"
}

command -v qemu-img >/dev/null || die "no qemu-img in PATH; scripts/setup/packages.sh test installs it"
main "$@"
