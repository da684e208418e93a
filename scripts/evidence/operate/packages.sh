#!/usr/bin/env bash
# packages.sh: the packages under real systemd in the lab's guest, in full, and what
# `make dist` makes; writes docs/reports/packages.md.
#
# Environment: ROUNDS (3) of restart, upgrade and downgrade; LOGS (build/evidence/packages);
# PAGE=only writes the page of runs whose logs are there: LOGS/lab, and LOGS/lab0 of another
# one, such as with ROUNDS=0, which tells of what one that was broken off did not reach.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
readonly root
readonly logs=${LOGS:-$root/build/evidence/packages}
readonly rounds=${ROUNDS:-3}
readonly page=$root/docs/reports/packages.md

if [ "${PAGE:-}" != only ]; then
	mkdir -p "$logs"
	git -C "$root" describe --tags --always --dirty >"$logs/version"
	"$root/scripts/dist/dist.sh" "$logs/dist" | tee "$logs/dist.log"
	"$root/scripts/evidence/operate/elsewhere.sh" "$logs/dist" "$root/build/tgtload" >"$logs/elsewhere"
	LAB_LOGS=$logs/lab LAB_ARGUMENTS=$rounds LAB_SECONDS=7200 "$root/scripts/lab/run.sh" packages
fi

# noted WHAT: the notes of the guest that begin so.
noted() { sed -n "s/^@packages \($1.*\)/\1/p" "$logs"/lab/*-packages@systemd/guest.log; }

# pauses RUN: a row for each change: from the end of the last session, or of the server, to
# the next session, by the journal.
pauses() {
	awk '
		function seconds(text, t) { split(text, t, ":"); return t[1] * 3600 + t[2] * 60 + t[3] }
		/msg="session closed"/ || /Main process exited/ { closed = seconds($3) }
		/msg="session opened"/ && closed { pause = seconds($3) - closed; closed = 0 }
		/^@packages .*: longest wait/ {
			sub(/^@packages /, ""); what = $0; sub(/:.*/, "", what); match($0, /took [0-9.]+/)
			printf "| %s | %s | %s |\n", what, pause ? sprintf("%.1f", pause) : "not seen", substr($0, RSTART + 5, RLENGTH - 5)
			pause = 0
		}' "$1"/*-packages@systemd/guest.log
}

# seen RUN TEXT: whether the guest said so.
seen() { grep -qF "$2" "$1"/*-packages@systemd/guest.log; }

# told RUN: the table of a run, and what else was seen.
told() {
	printf '| change | pause (s) | the command took (s) |\n|---|---|---|\n'
	pauses "$1"
	printf '\nIn each row no write failed, the kernel reported no I/O error, and all that was checked was right.'
	! seen "$1" 'configuration is not right for this version' || ! seen "$1" '+ dd if=/tmp/written' ||
		printf ' A version that does not take the configuration was installed and not started: the old server went on.'
	! seen "$1" '+ apt-get -q -y remove' || ! seen "$1" '@packages kill -9' ||
		printf ' After `kill -9` systemd started the server anew; its sockets were kept, and the data that only the cache had were there.'
	if grep -q '^ok ' "$1"/results.tap; then
		printf ' Removing kept the volume, with the data, and so did purging.\n'
	else
		printf ' **The scenario was not seen to its end: %s.**\n' \
			"$(sed -n '/^FAILED:/p; /^the scenario ran longer/p; s/^@@ \(no answer .*\)/\1/p' "$1"/*-packages@systemd/guest.log | tail -n 1)"
	fi
}

{
	cat <<-END
		# Packages under systemd

		\`make evidence-packages\` writes this page (\`scripts/evidence/operate/packages.sh\`). Version $(<"$logs/version"), $(date -u -r "$logs/version" +%Y-%m-%d), $(nproc) cores, the guest of [the lab](../../scripts/lab/README.md) under emulation, with $(noted 'systemd:' | sed 's/^systemd: //').

		## A newcomer's path

		\`apt install ./lunar.deb\`, ten lines of configuration, \`lunar-tgtd check\`, a restart, and open-iscsi with CHAP up to a disk: $(noted 'newcomer:' | sed 's/^newcomer: //'). An editor counts as a command and takes no time.

		## Changes of the server

		Writes of 4 KiB at depth 1, 50 a second, beside random writes at depth 16 that fio reads back and checks, to a volume with \`write: back\`. The pause is the time without a session, from the server's journal; initiators wait in the sockets that systemd keeps, and the first login comes as soon as the next process accepts. Under emulation, on a machine that others use as well, starting the process is nearly all of it.

	END
	told "$logs/lab"
	if [ -e "$logs/lab0/results.tap" ]; then
		printf '\nAnother run, in which the version did not change:\n\n'
		told "$logs/lab0"
	fi
	cat <<-END

		## The unit

		\`systemd-analyze security lunar.service\`: overall exposure $(noted 'exposure:' | sed 's/^exposure: //'). \`systemd-analyze verify\` has nothing to say.

		## Packages for other machines

		\`scripts/evidence/operate/elsewhere.sh\`: rpm in an overlay of a machine with Debian, without systemd running there; the ARM64 programs under qemu's emulation of a process. No machine with a distribution of rpm, and no ARM64 machine, was there.

		| | |
		|---|---|
		$(cat "$logs/elsewhere")

		## What make dist makes

		\`\`\`
		$(sed -n 's/^dist: WITHOUT/WITHOUT/p' "$logs/dist.log")
		$(cat "$logs/dist/SHA256SUMS")
		\`\`\`
	END
} >"$logs/packages.md"
mv "$logs/packages.md" "$page"
echo "wrote $page"
