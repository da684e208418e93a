# A portal is drained under checked I/O: the initiator logs out when it is asked
# to, is sent to another portal when it comes back, and no I/O fails.
attach disk
device=$(disk disk 0)
address() { cat /sys/class/iscsi_connection/connection*/address 2>/dev/null || :; } # none between two logins
equal "$(address)" 127.0.0.1
verified "$device" --bs=16k --size=32M --rate_iops=200 &
io=$!
sleep 2
must kill -0 "$io"
echo "host: $(host drain "127.0.0.1:$PORT" "127.0.0.2:$PORT")"
eventually 127.0.0.2 address
must kill -0 "$io"
must wait "$io"
equal "$(sessions_of disk | wc -l)" 1
no_io_errors
