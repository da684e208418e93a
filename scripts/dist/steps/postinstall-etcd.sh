#!/bin/sh
# After the files have come. Without a member in the state directory nothing starts.
set -e

case "$1" in
abort-*) exit 0 ;;
esac
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
systemctl enable --quiet lunar-etcd.service
systemctl restart lunar-etcd.service
