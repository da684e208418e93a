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
