#!/bin/sh
# After the files have come: "configure [OLD-VERSION]" from dpkg, the number of installed
# versions from rpm.
set -e

case "$1" in
configure) [ -n "$2" ] && old=yes || old= ;;
abort-*) exit 0 ;;
1) old= ;;
*) old=yes ;;
esac

systemd-sysusers lunar.conf
systemd-tmpfiles --create lunar.conf || true # without /dev/shm there is no cache
# Not where they were given to the server, so that the control API may change the configuration.
chown --from=root:root root:lunar /etc/lunar /etc/lunar/tgtd.yaml
[ -d /run/systemd/system ] || exit 0

systemctl daemon-reload
if [ -z "$old" ]; then
	systemctl enable --quiet lunar.service
	systemctl start lunar.service ||
		echo "lunar: the server did not start (is port 3260 another target's?): see 'journalctl -u lunar', edit /etc/lunar/tgtd.yaml and 'systemctl start lunar'" >&2
elif systemctl --quiet is-active lunar.service; then
	# The portals stay open meanwhile, and initiators log in again at once. A version that
	# does not take the configuration does not get it: the old one goes on.
	if runuser -u lunar -- /usr/libexec/lunar/tgtd check /etc/lunar/tgtd.yaml --state-dir /var/lib/lunar >/dev/null; then
		systemctl restart lunar.service
	else
		echo "lunar: the configuration is not right for this version. The server of the version before still runs: correct /etc/lunar/tgtd.yaml, then 'systemctl restart lunar'" >&2
	fi
fi
