#!/bin/sh
# Before the files go: "remove" from dpkg, 0 from rpm; anything else is an upgrade.
set -e

case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
[ -d /run/systemd/system ] || exit 0
systemctl --quiet disable --now lunar-etcd.service
