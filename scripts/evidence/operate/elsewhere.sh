#!/usr/bin/env bash
# elsewhere.sh DIRECTORY TGTLOAD: what can be tried here of the packages in DIRECTORY that are
# for other machines, as root: rpm installs, upgrades and removes its package in an overlay of
# this machine, whose files do not change; the programs for ARM64 run under qemu, and tgtload
# checks a volume of theirs. Prints a row of a table for each.
#
# Environment: QEMU (qemu-aarch64-static), PORT (3269).
set -euo pipefail

readonly dist=$(realpath "$1") load=$(realpath "$2")
readonly qemu=${QEMU:-qemu-aarch64-static} port=${PORT:-3269}
readonly libraries=/usr/aarch64-linux-gnu # of the C compiler for ARM64

row() { printf '| %s | %s |\n' "$1" "$2"; }

# eventually COMMAND...: within a minute.
eventually() {
	for ((tries = 0; tries < 300; tries++)); do
		if "$@" 2>/dev/null; then return; fi
		sleep 0.2
	done
	return 1
}

# configuration SECRET-FILE: of a server that is tried.
configuration() {
	cat <<-END
		portal-groups:
		  lan: {listen: ["127.0.0.1:$port"]}
		auth-groups:
		  hosts:
		    chap: [{user: host1, secret: "$(cat "$1")"}]
		cache: {size: 32MiB}
		volumes:
		  disk: {type: file, path: disk.img, size: 64MiB, write: back, cache: true}
		targets:
		  iqn.2026-11.example.san:disk: {auth-group: hosts, luns: {0: disk}}
	END
}

checked() { "$load" --target="iscsi://127.0.0.1:$port/iqn.2026-11.example.san:disk/0" --chap=host1 --chap-secret-file="$work/secret" --rw=randrw --verify --runtime=3s; }

# arm64: the programs of the .deb.
arm64() {
	command -v "$qemu" >/dev/null || { row 'ARM64' 'not tried: there is no qemu-aarch64-static'; return; }
	dpkg -x "$dist"/*_arm64.deb "$work/arm64"
	local tgtd="$work/arm64/usr/libexec/lunar/tgtd" lunar="$work/arm64/usr/bin/lunar" server said
	run() { "$qemu" -L "$libraries" "$@"; }
	row 'ARM64: `lunar-tgtd version`, under qemu' "$(run "$tgtd" version)"
	mkdir "$work/state"
	run "$tgtd" check "$work/tgtd.yaml" >&2
	"$qemu" -L "$libraries" "$tgtd" serve -c "$work/tgtd.yaml" --state-dir "$work/state" >"$work/log" 2>&1 &
	server=$!
	eventually grep -q msg=ready "$work/log"
	said=$(checked)
	echo "$said" >&2
	row 'ARM64: `check`, `serve`, a login with CHAP, reads and writes with `write: back` that are checked for 3 s, `lunar status`' "$(run "$lunar" status --state-dir "$work/state" | head -n 1)"
	kill "$server"
	wait "$server"
	row 'ARM64: SIGTERM' "it ended in order"
}

# rpm_steps: in the overlay.
rpm_steps() {
	systemd=$([ -d /run/systemd/system ] && echo runs || echo 'does not run')
	rpm --quiet -i --nodeps /packages/*.x86_64.rpm
	row "rpm: installed (systemd $systemd there), the user lunar, the rights of the configuration" "$(id -un lunar), $(stat -c '%a %U:%G' /etc/lunar/tgtd.yaml)"
	rm -rf /var/lib/lunar # of a server that this machine had; the overlay alone forgets it
	install -d -o lunar -g lunar -m 700 /var/lib/lunar # systemd does this at the start
	configuration /packages/secret >/etc/lunar/tgtd.yaml
	local as_lunar=(setpriv --reuid lunar --regid lunar --init-groups)
	"${as_lunar[@]}" lunar-tgtd check /etc/lunar/tgtd.yaml --state-dir /var/lib/lunar >&2
	"${as_lunar[@]}" lunar-tgtd serve -c /etc/lunar/tgtd.yaml --state-dir /var/lib/lunar >/tmp/log 2>&1 &
	server=$!
	eventually grep -q msg=ready /tmp/log
	checked >&2
	row 'rpm: the server as the user lunar, with checked reads and writes' "$(lunar status --state-dir /var/lib/lunar | head -n 1)"
	rpm --quiet -U --force --nodeps /packages/*.x86_64.rpm
	kill "$server"
	wait "$server"
	row 'rpm: upgraded, the configuration as it was' "$(grep -c iqn /etc/lunar/tgtd.yaml) target"
	rpm --quiet -e --nodeps lunar
	row 'rpm: removed, what is left' "$(cd / && ls -d etc/lunar/tgtd.yaml* var/lib/lunar/disk.img | tr '\n' ' ')"
	[ ! -e /usr/bin/lunar ] && [ ! -e /usr/lib/systemd/system/lunar.service ]
}

if [ "${3:-}" = inside ]; then
	work=/packages
	rpm_steps
	exit
fi
[ "$(id -u)" = 0 ] || { row 'ARM64, rpm' 'not tried: that needs root'; exit; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf 'twelve bytes or more' >"$work/secret"
configuration "$work/secret" >"$work/tgtd.yaml"
chmod 600 "$work/secret" "$work/tgtd.yaml"
arm64
command -v rpm >/dev/null || { row 'rpm' 'not tried: there is no rpm'; exit; }
# shellcheck disable=SC2016 # the inner shell's
unshare --mount bash -euo pipefail -c '
	mount --make-rprivate /
	mount -t tmpfs tmpfs "$1"
	mkdir "$1"/{up,work,root}
	mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" "$1/root"
	for tree in proc sys dev; do mount --rbind /$tree "$1/root/$tree"; done
	mount -t tmpfs tmpfs "$1/root/dev/shm"
	mkdir "$1/root/packages"
	cp "$2"/*.x86_64.rpm "$3" "$4" "$5" "$1/root/packages/"
	exec chroot "$1/root" bash "/packages/${5##*/}" /packages "/packages/${3##*/}" inside' \
	- "$(mktemp -d -p "$work")" "$dist" "$load" "$work/secret" "$(realpath "$0")"
