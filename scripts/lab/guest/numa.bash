# What scenarios on machines with several nodes use beside initiator.bash: tgtd
# in this guest, which is reached through the network device of each node.
. /lab/tgtd.bash

# As the configuration has it, in bytes.
readonly CACHE_PER_NODE=$((48 << 20)) BUFFERS_PER_THREAD=$((20 << 20))

# NODES: their numbers, a line each.
NODES=$(ls -d /sys/devices/system/node/node[0-9]* | sed 's/.*node//' | sort -n)

# cpus_of NODE: its list of CPUs, such as 0,2. cpu_numbers NODE: a line for each.
cpus_of() { cat "/sys/devices/system/node/node$1/cpulist"; }
cpu_numbers() { cpus_of "$1" | tr , '\n'; }

# portal_of NODE: the address of its network device, which stays in this guest.
portal_of() { echo "10.1.$1.1:3260"; }

# address_devices gives each node's network device its address.
address_devices() {
	local device node
	for device in /sys/class/net/eth*; do
		# The node is that of the PCI device, which is above the virtio device.
		node=$(cat "$(readlink -f "$device/device")/../numa_node")
		ip address replace "10.1.$node.1/32" dev "${device##*/}"
		ip link set "${device##*/}" up
	done
}

# tgtd_configure [SED-EXPRESSION]: the configuration, with a change.
tgtd_configure() { sed -e "${1:-}" -e 's|@SEGMENT@|/dev/shm/lunar|' /lab/conf/numa.yaml >/tmp/tgtd.yaml; }

# tgtd_threads: name and allowed CPUs of each thread of tgtd.
tgtd_threads() { awk '$1 == "Name:" { name = $2 } $1 == "Cpus_allowed_list:" { print name, $2 }' "/proc/$tgtd_pid"/task/*/status; }

# status LIST: the objects of a list in what tgtd tells of itself, a line each, without
# objects in them.
status() { /lab/lunar status --json | tr -d ' \n' | grep -o "\"$1\":\[[^]]*\]" | sed -E ':a; s/":\{[^{}]*\}/":0/; ta' | grep -o '{[^{}]*}'; }

# fields NAME...: their values in such lines.
fields() {
	local object name values
	while read -r object; do
		values=()
		for name; do
			[[ $object =~ \"$name\":\"?([^\",}]*) ]] || fail "found no $name in $object"
			values+=("${BASH_REMATCH[1]}")
		done
		echo "${values[*]}"
	done
}

address_devices
PORTAL=$(portal_of 0)
