# Two portals of one LU under multipath: one path goes away under checked I/O.
node disk "127.0.0.1:$PORT"
node disk "127.0.0.2:$PORT"
login disk
disk disk 0 >/dev/null
udevadm settle
cat >/etc/multipath.conf <<'CONF'
defaults {
	find_multipaths no
	path_grouping_policy multibus
	no_path_retry 10
}
CONF
modprobe dm_multipath
must multipath "$(disk disk 0)"
path=/dev/mapper/$(multipath -l -v1)
must test -b "$path"
map=$(multipath -ll "$path")
echo "$map"
equal "$(grep -c ' sd[a-z]' <<<"$map")" 2

verified "$path" --bs=16k --size=16M &
io=$!
sleep 2
logout disk -p "127.0.0.2:$PORT"
must wait "$io"
unused() { # udev looks into a map that was written to, for a moment
	udevadm settle --timeout=10
	if multipath -f "$path" >/dev/null; then echo gone; else echo busy; fi
}
eventually gone unused
