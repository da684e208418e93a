# The guest's link fails under checked I/O: the initiator logs in again while
# the target still holds the old session (session reinstatement).
node disk
setting disk node.conn[0].timeo.noop_out_interval 1
setting disk node.conn[0].timeo.noop_out_timeout 2
login disk
device=$(disk disk 0)
verified "$device" --bs=16k --size=32M --rate_iops=300 &
io=$!
sleep 2
must kill -0 "$io"
must ip link set eth0 down
sleep 5
must link_up
must wait "$io"
equal "$(sessions_of disk | wc -l)" 1
eventually 1 host connections
no_io_errors
