#!/usr/bin/env bash
# quickstart.sh: the quick start of docs/install.md as a program. It serves a disk to this
# machine alone, asks the server what it serves, changes it while it runs, and stops it.
# Nothing outside of a temporary directory is touched, and no privilege is needed.
#
# quickstart.sh [DIRECTORY]: with tgtd and lunar of DIRECTORY, else of PATH.
set -euo pipefail

PATH="${1:-$PATH}:$PATH"
work=$(mktemp -d)
server=
stop() {
	[ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" || true; }
	rm -rf "$work"
}
trap stop EXIT
say() { printf '\n# %s\n' "$*"; }

say "1. A configuration: a disk of 100 MiB, for one user, on a free port of this machine."
cat >"$work/tgtd.yaml" <<YAML
portal-groups:
  lan: {listen: ["127.0.0.1:0"]}
auth-groups:
  hosts:
    chap: [{user: host1, secret: "twelve bytes or more"}]
volumes:
  disk: {type: file, path: $work/disk.img, size: 100MiB}
targets:
  iqn.2026-11.example.san:disk:
    {auth-group: hosts, luns: {0: disk}}
YAML
chmod 600 "$work/tgtd.yaml"

say "2. tgtd check: all mistakes at once, each with its place."
tgtd check "$work/tgtd.yaml"

say "3. tgtd serve."
tgtd serve -c "$work/tgtd.yaml" --state-dir "$work/state" >"$work/out" 2>"$work/log" &
server=$!
for _ in $(seq 100); do
	lunar status --state-dir "$work/state" --check >/dev/null 2>&1 && break
	kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
	sleep 0.1
done

say "4. lunar status."
lunar status --state-dir "$work/state" --check
lunar volume list --state-dir "$work/state"

say "5. Who may log in? lunar why judges it as a login is judged."
lunar why iqn.1993-08.org.debian:01:host1 iqn.2026-11.example.san:disk --state-dir "$work/state"

say "6. A second disk, while the server runs; the configuration file has it from then on."
lunar volume create more type=file path="$work/more.img" size=50MiB --state-dir "$work/state"
lunar lun create iqn.2026-11.example.san:disk 1 volume=more --state-dir "$work/state"
grep -q more.img "$work/tgtd.yaml"

say "7. From an initiator on this machine, as root:"
sed -n 's/^ *iscsiadm/iscsiadm/p' "$work/out"

say "8. SIGTERM stops the server in order."
kill "$server"
wait "$server"
server=
echo "done"
