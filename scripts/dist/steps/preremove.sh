#!/bin/sh
# Before the files go: "remove" from dpkg, 0 from rpm; anything else is an upgrade, which
# the server does not notice until the new files are there.
set -e

case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
[ -d /run/systemd/system ] || exit 0
systemctl --quiet disable --now lunar.service
