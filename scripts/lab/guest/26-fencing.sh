# Two initiators fight over a reservation as cluster fence agents do: each
# registers a key, writing is for registrants, the fenced one is preempted with
# its commands aborted. What was registered with APTPL survives a crash of tgtd.
two_initiators
login disk -p "$PORTAL"
mine=$(disk disk 0 "$INITIATOR")
other=$(disk disk 0 "$SECOND")
persist() { must sg_persist --no-inquiry "$@" >/tmp/persist || fail "$(cat /tmp/persist)"; cat /tmp/persist; }
keys() { sg_persist --no-inquiry --in --read-keys "$1" | grep -oE '0x[0-9a-f]+$' | sort | xargs || :; }
writes() { dd if=/dev/zero of="$1" bs=4k count=1 seek=7 oflag=direct status=none; }
reads() { dd if="$1" of=/dev/null bs=4k count=1 iflag=direct status=none; }

# unfence: register with APTPL; the first one reserves for all registrants.
persist --out --register-ignore --param-aptpl --param-sark=0xa1 "$mine"
persist --out --reserve --param-rk=0xa1 --prout-type=5 "$mine"
refused writes "$other"
must reads "$other"
persist --out --register-ignore --param-aptpl --param-sark=0xb2 "$other"
equal "$(keys "$mine")" "0xa1 0xb2"
must writes "$other"
refused sg_persist --no-inquiry --out --reserve --param-rk=0xb2 --prout-type=5 "$other"

# fence: while the other one writes.
while writes "$other" 2>/dev/null; do :; done &
writer=$!
sleep 1
persist --out --preempt-abort --param-rk=0xa1 --param-sark=0xb2 --prout-type=5 "$mine"
must wait "$writer"
refused writes "$other"
must reads "$other"
equal "$(keys "$other")" "0xa1"
verified "$mine" --bs=16k --size=4M

# The server dies: the fence holds.
must host kill
must host start
eventually "0xa1" keys "$mine"
eventually yes eval 'writes "$mine" 2>/dev/null && echo yes || echo no'
refused writes "$other"
persist --in --read-reservation "$other" | grep -i 'registrants only' || fail "the reservation is gone"
persist --in --read-full-status "$other" | grep "$INITIATOR" || fail "the registration is gone"

# The fenced one takes over, as after an election, and releases.
persist --out --register-ignore --param-aptpl --param-sark=0xb2 "$other"
persist --out --preempt --param-rk=0xb2 --param-sark=0xa1 --prout-type=3 "$other"
refused reads "$mine"
must writes "$other"
persist --out --release --param-rk=0xb2 --prout-type=3 "$other"
must writes "$mine"
persist --out --clear --param-rk=0xb2 "$other"
equal "$(keys "$mine")" ""
