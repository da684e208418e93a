# SendTargets shows an initiator what it may use, and nothing else; what it
# shows can be logged in to as it is.
equal "$(discover)" "$(printf '%s\n' "$BASE":{chap,disk,mutual,several,shared})"

must iscsiadm -m discovery -t sendtargets -p "$PORTAL"
login disk -p "$PORTAL"
logout disk -p "$PORTAL"
for hidden in private elsewhere; do
	node "$hidden"
	login_refused "$hidden"
done

iface second "$SECOND"
equal "$(discover -I second)" "$(printf '%s\n' "$BASE":{chap,disk,mutual,private,several,shared})"
node private "$PORTAL" second
login private
