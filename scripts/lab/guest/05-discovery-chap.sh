# Discovery with credentials of its own.
discovery=(iscsiadm -m discoverydb -t sendtargets -p "$PORTAL")
must "${discovery[@]}" -o new
refused "${discovery[@]}" --discover

credentials() {
	must "${discovery[@]}" -o update -n discovery.sendtargets.auth.authmethod -v CHAP
	must "${discovery[@]}" -o update -n discovery.sendtargets.auth.username -v "$1"
	must "${discovery[@]}" -o update -n discovery.sendtargets.auth.password -v "$2"
}

credentials finder wrong-secret-1
refused "${discovery[@]}" --discover
credentials finder finders-secret-1
must "${discovery[@]}" --discover
login disk
logout disk
