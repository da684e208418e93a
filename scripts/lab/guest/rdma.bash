# What scenarios on the machine rdma use beside initiator.bash: a Soft-RoCE device
# over a network device that loops back, so that frames of 4096 bytes fit.
RDMA_ADDRESS=10.2.0.1
RDMA_DEVICE=rxe0
RDMA_NETDEV=iser0

# rdma_up is true at once when it was there before.
rdma_up() {
	[ ! -e "/sys/class/infiniband/$RDMA_DEVICE" ] || return 0
	must modprobe -a dummy rdma_rxe rdma_ucm ib_uverbs ib_iser
	must ip link add "$RDMA_NETDEV" type dummy
	must ip link set "$RDMA_NETDEV" mtu 9000 up
	must ip address add "$RDMA_ADDRESS/24" dev "$RDMA_NETDEV"
	must rdma link add "$RDMA_DEVICE" type rxe netdev "$RDMA_NETDEV"
	udevadm settle --timeout=20
}

# rdma_down: the device is gone, as after its removal from a machine.
rdma_down() {
	must rdma link delete "$RDMA_DEVICE"
	must ip link delete "$RDMA_NETDEV"
}

# rdma_counter NAME: of the device, such as rcvd_rnr_err.
rdma_counter() { cat "/sys/class/infiniband/$RDMA_DEVICE/ports/1/hw_counters/$1"; }

# A cable between two Soft-RoCE devices of this machine, through a bridge that is a
# switch: WIRE_INITIATOR on one side, WIRE_TARGET on the other. Packets to either
# address go out where the other side is and come in by the device, although both
# addresses are this machine's: the table of local addresses counts for what comes
# in first, and for what goes out last.
WIRE_INITIATOR=10.3.0.1
WIRE_TARGET=10.3.0.2

wire_up() {
	local side
	must modprobe -a bridge veth rdma_rxe rdma_ucm ib_uverbs ib_iser
	must ip link add switch0 mtu 9000 type bridge
	must ip link set switch0 up
	for side in wirei wiret; do
		must ip link add "$side" mtu 9000 type veth peer name "${side}p" mtu 9000
		must ip link set "${side}p" master switch0 up
		must ip link set "$side" up
		must ip rule add pref 10 iif "$side" lookup local
		must sysctl -q -w "net.ipv4.conf.$side.accept_local=1" "net.ipv4.conf.$side.rp_filter=0"
	done
	must ip rule add pref 100 lookup local
	must ip rule del pref 0
	wire_side wirei "$WIRE_INITIATOR" "$WIRE_TARGET" wiret 101
	wire_side wiret "$WIRE_TARGET" "$WIRE_INITIATOR" wirei 102
	must rdma link add rxei type rxe netdev wirei
	must rdma link add rxet type rxe netdev wiret
	udevadm settle --timeout=20
}

# wire_side DEVICE ADDRESS OTHER-ADDRESS OTHER-DEVICE TABLE
wire_side() {
	must ip address add "$2/32" dev "$1"
	must ip route add "$3" dev "$1" src "$2" table "$5"
	must ip rule add pref 20 to "$3" lookup "$5"
	must ip neigh replace "$3" lladdr "$(cat "/sys/class/net/$4/address")" dev "$1" nud permanent
}

# wire_cut: the target's cable is pulled out of the switch; its own link stays up.
wire_cut() { must ip link set wiretp nomaster; }
wire_mend() { must ip link set wiretp master switch0; }

wire_down() {
	must rdma link delete rxei
	must rdma link delete rxet
	must ip link delete wirei
	must ip link delete wiret
	must ip link delete switch0
	must ip rule add pref 0 lookup local
	for pref in 10 10 20 20 100; do must ip rule del pref "$pref"; done
}
