# machines: systemd
# seconds: 6000
# when: named
# The packages under systemd: installed, configured by ten lines, upgraded and downgraded
# under checked I/O, killed, removed and purged. ARGUMENTS: how many times to go up and down.

rounds=${ARGUMENTS:-1}

# The portal is this machine's own.
ip route del 127.0.0.0/8 2>/dev/null || :
ip address add 127.0.0.1/8 dev lo 2>/dev/null || :
must systemctl --quiet is-system-running --wait || systemctl --failed --no-legend --plain

package() { echo /lab/lunar_"$1"_*.deb; }
version_of() { lunar status --json | tr -d ' \n' | sed -n 's/.*"version":"\([^"]*\)".*/\1/p'; }
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }
# note WHAT: a line of the report.
note() { echo "@packages $*"; }

# step COMMAND...: one that a newcomer types.
steps=0
step() {
	steps=$((steps + 1))
	must "$@"
}

began=$(now)
step apt-get -q -y install "$(package 1.0.0)" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; fail "apt-get install"; }
installed=$(since "$began")
equal "$(systemctl is-active lunar)" active
equal "$(systemctl is-enabled lunar)" enabled
equal "$(stat -c '%a %U:%G' /etc/lunar/tgtd.yaml)" '640 root:lunar'
equal "$(version_of)" 1.0.0
steps=$((steps + 1)) # the editor
cat >/etc/lunar/tgtd.yaml <<EOF
portal-groups:
  lan: {listen: ["127.0.0.1:3260"]}
auth-groups:
  hosts:
    chap: [{user: host1, secret: "twelve bytes or more"}]
cache: {size: 32MiB}
volumes:
  disk: {type: file, path: disk.img, size: 64MiB, write: back, cache: true}
targets:
  $BASE:one: {auth-group: hosts, luns: {0: disk}}
EOF
step lunar-tgtd check /etc/lunar/tgtd.yaml
refused systemctl --quiet is-failed lunar
# A cache that there was not needs a restart.
step systemctl restart lunar
PORTAL=127.0.0.1:3260
step iscsiadm -m discovery -t sendtargets -p "$PORTAL"
step iscsiadm -m node -T "$BASE:one" -o update -n node.session.auth.authmethod -v CHAP
step iscsiadm -m node -T "$BASE:one" -o update -n node.session.auth.username -v host1
step iscsiadm -m node -T "$BASE:one" -o update -n node.session.auth.password -v 'twelve bytes or more'
step iscsiadm -m node -T "$BASE:one" --login
disk=$(disk one 0)
note "newcomer: $steps commands, $(since "$began") s (the package $installed s)"
note "exposure: $(systemd-analyze security --no-pager lunar.service | tail -n 1 | sed 's/.*: //')"
mistakes=$(systemd-analyze verify --man=no /usr/lib/systemd/system/lunar.service 2>&1 | grep -F lunar.service || :)
equal "$mistakes" ""
note "systemd: $(systemctl --version | head -n 1)"
# The unit lets the server confine itself.
warnings=$(journalctl -u lunar -p warning -o cat --no-pager | grep -vE 'found no target|that nothing uses' || :)
equal "$warnings" ""

# Two areas of the disk, not so busy that installing takes minutes under emulation: what is checked, and what measures pauses.
checking() {
	while [ ! -e /tmp/enough ]; do
		verified "$disk" --bs=4k --size=2M --offset=8M --verify_backlog=64 --rate_iops=100,100 || return
	done
}
# longest FILE: the longest wait for a write, with its submission, in seconds.
longest() { awk '/"write" :/ { w = 1 } w && /"lat_ns"/ { c = 1 } c && /"max"/ { gsub(/[^0-9]/, ""); printf "%.2f", $0 / 1e9; exit }' "$1"; }
# across WHAT COMMAND...: a change of the server, under I/O that is checked.
across() {
	local meter sockets before
	before=$(systemctl show -P MainPID lunar)
	rm -f /tmp/enough /tmp/pause
	(checking) >/tmp/checking 2>&1 &
	local checker=$!
	fio --filename="$disk" --direct=1 --ioengine=libaio --rw=randwrite --bs=4k --iodepth=1 --rate_iops=50 --size=4M --time_based --runtime=3000 --clocksource=clock_gettime \
		--name=pause --output-format=json --output=/tmp/pause >/dev/null 2>&1 &
	meter=$!
	sleep 3
	local began
	began=$(now)
	"${@:2}" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; journalctl -u lunar --no-pager -o cat | tail -n 20; fail "${*:2}"; }
	local took
	took=$(since "$began")
	[ "$(systemctl show -P MainPID lunar)" != "$before" ] || fail "the server was not replaced"
	journalctl --no-pager -o short-precise --since="@${began%.*}" -u lunar | grep -E 'msg=(change|ready|stopped)|systemd|session' | cut -c1-150 | tail -n 15
	eventually 1 sessions
	sleep 3
	kill -INT "$meter" || fail "the disk failed during $1: $(tail -n 3 /tmp/pause)"
	wait "$meter" || :
	touch /tmp/enough
	wait "$checker" || { cat /tmp/checking; fail "checked I/O during $1"; }
	no_io_errors
	note "$1: longest wait of a write $(longest /tmp/pause) s, the command took $took s"
}
sessions() { lunar sessions --json 2>/dev/null | grep -c '"isid"' || :; }

for ((round = 0; round < rounds; round++)); do
	across restart systemctl restart lunar
	across upgrade apt-get -q -y install "$(package 1.1.0)"
	equal "$(version_of)" 1.1.0
	across downgrade apt-get -q -y --allow-downgrades install "$(package 1.0.0)"
	equal "$(version_of)" 1.0.0
done

if [ "$rounds" -gt 0 ]; then
	# A version that does not take the configuration does not get it.
	cp /etc/lunar/tgtd.yaml /tmp/right.yaml
	echo 'nonsense: 1' >>/etc/lunar/tgtd.yaml
	pid=$(systemctl show -P MainPID lunar)
	must apt-get -q -y install "$(package 1.1.0)"
	equal "$(systemctl show -P MainPID lunar)" "$pid"
	cp /tmp/right.yaml /etc/lunar/tgtd.yaml
fi

# A killed server: its sockets and its cache wait for the next. What is written lies behind both areas.
head -c 1M /dev/urandom >/tmp/written
must dd if=/tmp/written of="$disk" bs=64k seek=256 oflag=direct status=none
across 'kill -9' bash -c 'kill -9 $(systemctl show -P MainPID lunar); for i in $(seq 100); do sleep 0.2; systemctl --quiet is-active lunar && break; done'
must cmp <(dd if="$disk" bs=64k skip=256 count=16 iflag=direct status=none) /tmp/written

udevadm settle --timeout=30
must iscsiadm -m node -T "$BASE:one" --logout
must apt-get -q -y remove lunar
refused systemctl --quiet is-active lunar
refused bash -c 'exec 3<>/dev/tcp/127.0.0.1/3260'
must cmp <(dd if=/var/lib/lunar/disk.img bs=1M skip=16 count=1 status=none) /tmp/written
must apt-get -q -y purge lunar
[ -s /var/lib/lunar/disk.img ] || fail "purging removed a volume"
[ ! -e /dev/shm/lunar ] || fail "purging left the cache of a server that ended in order"
