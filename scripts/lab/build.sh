#!/usr/bin/env bash
# Builds the lab's guest once: Debian's kernel, a busybox initramfs and a root
# disk with open-iscsi. Prints the directory that holds vmlinuz, initrd.img and
# root.img. The directory's name carries a hash of the recipe (this file and
# image/), so a changed recipe is built anew and an unchanged one is only found.
set -euo pipefail

readonly release=bookworm
lab=$(cd "$(dirname "$0")" && pwd)
readonly lab
readonly cache=${LUNAR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lunar}

say() { printf 'lab: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# listed FILE: its entries, without comments and blank lines.
listed() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$1"; }

recipe_hash() {
	(cd "$lab" && find build.sh image -type f -print0 | sort -z | xargs -0 sha256sum) |
		sha256sum | cut -c1-12
}

# mirror: where this machine's apt takes Debian's main archive from.
mirror() {
	local site
	site=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
		awk '$1 == "Debian" && $2 == "main" && !found++ { print $3 }')
	[ -n "$site" ] ||
		die "apt knows no Debian archive: run 'apt-get update', or add one to /etc/apt/sources.list.d"
	printf '%s\n' "$site"
}

need_tools() {
	[ "$(id -u)" = 0 ] ||
		die "building the guest's image needs root (debootstrap, chroot): run 'sudo LUNAR_CACHE=$cache $lab/build.sh' once"
	local tool missing=()
	for tool in debootstrap cpio busybox mke2fs; do
		command -v "$tool" >/dev/null || missing+=("$tool")
	done
	[ ${#missing[@]} = 0 ] || die "not installed: ${missing[*]}: run scripts/setup/packages.sh test"
}

# logged WHAT COMMAND...: runs a long command, shows its output only if it fails.
logged() {
	say "$1"
	shift
	"$@" >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; die "failed: $*"; }
}

install_root() {
	local include
	include=$(listed "$lab/image/packages" | paste -sd,)
	logged "installing Debian $release and open-iscsi" \
		debootstrap --variant=minbase --include="$include" "$release" "$work/root" "$(mirror)"
	printf 'lab\n' >"$work/root/etc/hostname"
	install -m 755 "$lab/image/lab-init" "$lab/image/lab-files" "$work/root/sbin/"
	install -m 644 "$lab/image/lab.target" "$lab/image/lab-agent.service" "$work/root/etc/systemd/system/"
	logged "leaving out what takes systemd long" chroot "$work/root" systemctl mask \
		systemd-udev-trigger.service systemd-random-seed.service systemd-timesyncd.service \
		iscsid.socket iscsid.service open-iscsi.service multipathd.service multipathd.socket tgt.service
}

# apt_in_root ARGUMENT...: apt-get in the new root, with this machine's proxy.
apt_in_root() {
	apt-config dump | grep -E '^Acquire::(http|https)::' >"$work/root/etc/apt/apt.conf.d/00host" || :
	chroot "$work/root" sh -c 'cd /tmp && exec apt-get -q "$@"' apt-get "$@"
}

# install_kernel unpacks the package instead of installing it: nothing in the
# guest needs its boot loader hooks or its own initramfs.
install_kernel() {
	local package leave_out=()
	logged "reading the package lists" apt_in_root update
	package=$(chroot "$work/root" apt-cache depends linux-image-amd64 |
		awk '$1 == "Depends:" && $2 ~ /^linux-image-/ && !found++ { print $2 }')
	[ -n "$package" ] || die "linux-image-amd64 names no kernel package"
	logged "fetching $package" apt_in_root -o APT::Sandbox::User=root download "$package"
	while read -r directory; do leave_out+=(--exclude="*/kernel/$directory"); done \
		< <(listed "$lab/image/modules-left-out")
	dpkg-deb --fsys-tarfile "$work/root/tmp/$package"_*.deb |
		tar -x -C "$work/root" --keep-directory-symlink "${leave_out[@]}" ./boot ./lib/modules
	rm "$work/root/tmp/$package"_*.deb
	kernel=${package#linux-image-}
	logged "indexing the modules of $kernel" chroot "$work/root" depmod "$kernel"
	mv "$work/root/boot/vmlinuz-$kernel" "$work/out/vmlinuz"
}

# make_initramfs packs busybox with the modules that lead to the root disk.
make_initramfs() {
	local tree=$work/initramfs module path
	mkdir -p "$tree/bin" "$tree/modules"
	cp "$(command -v busybox)" "$tree/bin/busybox"
	install -m 755 "$lab/image/initramfs-init" "$tree/init"
	for module in virtio_pci virtio_blk ext4; do
		chroot "$work/root" modprobe --set-version "$kernel" --show-depends "$module"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' |
		while read -r path; do
			cp "$work/root$path" "$tree/modules/"
			basename "$path"
		done >"$tree/modules/order"
	(cd "$tree" && find . -print0 | cpio --quiet --null -o -H newc) | gzip -1 >"$work/out/initrd.img"
}

trim_root() {
	local root=${work:?}/root
	rm -rf "$root"/boot/* "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* \
		"$root"/usr/share/{doc,info,locale,man} "$root"/tmp/* "$root"/etc/apt/apt.conf.d/00host
}

# make_disk leaves free space for files that scenarios write; it stays sparse.
make_disk() {
	trim_root
	logged "writing the root disk" \
		mke2fs -q -t ext4 -O ^has_journal -E lazy_itable_init=1 -d "$work/root" "$work/out/root.img" 2G
}

# discard_work leaves no mount of an interrupted debootstrap behind.
discard_work() {
	umount -q "$work/root/proc" "$work/root/sys" 2>/dev/null || :
	rm -rf --one-file-system "$work"
}

# forget_old_images removes what other recipes and killed builds left long ago.
forget_old_images() {
	find "$cache" -mindepth 1 -maxdepth 1 -type d \( -name 'lab-*' -o -name 'building.*' \) \
		-mtime +14 -exec rm -rf {} +
}

main() {
	local image=$cache/lab-$(recipe_hash)
	[ -d "$image" ] && { printf '%s\n' "$image"; return; }
	need_tools
	mkdir -p "$cache"
	exec 9>"$cache/lab.lock"
	flock 9
	# Another build of the same recipe may have finished while this one waited.
	[ -d "$image" ] && { printf '%s\n' "$image"; return; }
	work=$(mktemp -d "$cache/building.XXXXXX")
	trap discard_work EXIT
	mkdir "$work/out"
	chmod 755 "$work" "$work/out"
	install_root
	install_kernel
	make_initramfs
	make_disk
	mv "$work/out" "$image"
	forget_old_images
	say "built $image in $SECONDS s"
	printf '%s\n' "$image"
}

main "$@"
