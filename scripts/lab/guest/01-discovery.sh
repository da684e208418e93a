# SendTargets shows an initiator what it may use, and nothing else; what it
# shows can be logged in to as it is.
first=$(discover)
echo "$INITIATOR sees:" $first
equal "$first" "$(printf '%s\n' "$BASE":{chap,disk,mutual,shared})"

iface second "$SECOND"
second=$(discover -I second)
echo "$SECOND sees:" $second
equal "$second" "$(printf '%s\n' "$BASE":{chap,disk,mutual,private,shared})"

must iscsiadm -m discovery -t sendtargets -p "$PORTAL" -o new
login disk -p "$PORTAL"
logout disk -p "$PORTAL"
node private
login_refused private
node elsewhere
login_refused elsewhere
