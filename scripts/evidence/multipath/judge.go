package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"lunar/scripts/evidence/generations"
	"lunar/scripts/evidence/multipath/writers"
	"lunar/scripts/evidence/site"
)

// judge ends the load and compares everything, in the guest and on the host.
func (r *run) judge() error {
	f, err := r.guest.read()
	if err != nil {
		return err
	}
	if err := r.paths("At the end"); err != nil {
		return err
	}
	fmt.Println()
	load, _ := os.ReadFile("/proc/loadavg") // then it is not told
	fmt.Printf("Rounds that were made anew, for the guest or the host stood still in them: %d. The machine's load averages were %s at the end.\n\n", r.again, strings.Join(strings.Fields(string(load) + " - - -")[:3], ", "))
	if r.registered != "" {
		fmt.Println(r.registered + "\n")
	}
	var ledger writers.Ledger
	if err := r.guest.call("Halt", writers.Nothing{}, &ledger); err != nil {
		return err
	}
	fmt.Printf("Acknowledged writes that were lost: %d. Reads older than what was acknowledged: %d, of %d reads of blocks and %d of files; and %d, of %d reads by readers that stay on one path each, as far as that served. Calls that failed: %d.\n\n",
		f.Disk.Lost+f.Files.Lost, f.Disk.Stale+f.Files.Stale, f.Disk.Reads, f.Files.Reads, f.Paths.Stale+f.Paths.Lost, f.Paths.Reads, f.Disk.Failed+f.Files.Failed)
	if len(f.Wrong) > 0 {
		err = fmt.Errorf("the guest found %s", strings.Join(f.Wrong, "; "))
	}
	if len(r.late) > 0 {
		err = errors.Join(err, fmt.Errorf("gaps are longer than they may be: %s", strings.Join(r.late, ", ")))
	}
	return errors.Join(err, r.kernel(), r.inGuest(), r.guest.finish(), r.onHost(&ledger))
}

// kinds are lines of the kernel's log; those of a disk or a file system must not be there.
var kinds = []struct {
	name  string
	lines *regexp.Regexp
	none  bool
}{
	{"I/O errors of the multipath device", regexp.MustCompile(`I/O error.* dev dm-|Buffer I/O error on dev dm-`), true},
	{"errors and warnings of the file system and its journal, remounts", regexp.MustCompile(`EXT4-fs (error|warning)|JBD2|[Aa]borting journal|[Rr]emounting filesystem`), true},
	{"tasks that hung for two minutes", regexp.MustCompile(`blocked for more than`), true},
	{"I/O errors of single paths, which multipath sends to others", regexp.MustCompile(`I/O error, dev sd`), false},
	{"paths that were given up", regexp.MustCompile(`Failing path`), false},
	{"paths that were taken up again", regexp.MustCompile(`Reinstating path`), false},
	{"changes of a port group's state that were seen", regexp.MustCompile(`port group .* state`), false},
	{"unit attentions: access state changed", regexp.MustCompile(`(?i)asymmetric access state changed`), false},
	{"sessions whose connection failed", regexp.MustCompile(`detected conn error`), false},
	{"commands that NOPs found to be unanswered", regexp.MustCompile(`ping timeout`), false},
}

func (r *run) kernel() (err error) {
	log, err := r.guest.run("cat /tmp/kernel.log")
	if err != nil {
		return err
	}
	err = os.WriteFile(filepath.Join(r.Logs, "kernel.log"), []byte(log), 0o600)
	fmt.Print("| in the guest's kernel log | lines |\n|---|--:|\n")
	for _, k := range kinds {
		found := k.lines.FindAllString(log, -1)
		fmt.Printf("| %s | %d |\n", k.name, len(found))
		if k.none && len(found) > 0 {
			err = errors.Join(err, fmt.Errorf("the guest's kernel logged %d %s, such as %q", len(found), k.name, found[0]))
		}
	}
	fmt.Println()
	return err
}

// inGuest compares over multipath, after the file system was checked, and over each path.
func (r *run) inGuest() error {
	var blocks, files int
	err := errors.Join(
		r.guest.call("CompareDisk", "/dev/mapper/blocks", &blocks),
		r.guest.call("CompareFiles", "/tmp/files", &files))
	checked, e := r.guest.run("umount /tmp/files && fsck.ext4 -fn /dev/mapper/files 2>&1 && mount /dev/mapper/files /tmp/files")
	err = errors.Join(err, e, r.guest.call("CompareFiles", "/tmp/files", &files))
	fmt.Printf("At the end the guest compared %d blocks and %d files with the ledger, the files before and after a check by fsck.ext4 -fn (%s)", blocks, files, lastLine(checked))
	disks, e := r.guest.run("ls /sys/block/dm-0/slaves")
	err = errors.Join(err, e)
	for _, disk := range strings.Fields(disks) {
		if e := r.guest.call("CompareDisk", "/dev/"+disk, &blocks); e == nil {
			fmt.Printf("; and over the path %s alone", disk)
		} else if !strings.Contains(e.Error(), "input/output error") {
			err = errors.Join(err, e)
		} else {
			fmt.Printf("; the path %s does not serve", disk)
		}
	}
	if err == nil {
		fmt.Print(": all as it was acknowledged")
	}
	fmt.Print(".\n\n")
	return err
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// onHost compares what qemu-img reads over the owner and what Ceph has, without any server,
// with the ledger.
func (r *run) onHost(l *writers.Ledger) error {
	owner, err := r.site.Owner()
	if err != nil {
		return err
	}
	read, image := filepath.Join(r.site.Dir, "read"), filepath.Join(r.site.Dir, "image")
	if said, err := exec.Command("qemu-img", "convert", "-O", "raw", fmt.Sprintf("iscsi://%s/%s/0", owner.Portal, site.Target), read).CombinedOutput(); err != nil {
		return fmt.Errorf("qemu-img convert: %w: %s", err, said)
	}
	r.site.StopServers()
	if said, err := r.site.RBD("export", "--no-progress", "rbd/"+site.Volume, image); err != nil {
		return fmt.Errorf("rbd export: %w: %s", err, said)
	}
	if said, err := exec.Command("cmp", read, image).CombinedOutput(); err != nil {
		return fmt.Errorf("what qemu-img read over %s is not what Ceph has: %w: %s", owner.Name, err, said)
	}
	blocks, err := compareImage(image, l.Disk)
	if err != nil {
		return err
	}
	files, err := compareFiles(image, filepath.Join(r.site.Dir, "files"), l.Files)
	if err != nil {
		return err
	}
	fmt.Printf("On the host, `qemu-img convert` over the owner's portal, and then, with all servers stopped, `rbd export` gave the same image, with %d blocks and %d files (debugfs, after e2fsck -fn) as they were acknowledged.\n", blocks, files)
	return nil
}

func compareImage(image string, acked []uint32) (blocks int, err error) {
	f, err := os.Open(image)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	data := make([]byte, generations.BlockBytes)
	for n, g := range acked {
		if _, err := f.ReadAt(data, int64(n)*generations.BlockBytes); err != nil {
			return blocks, err
		}
		if err := generations.Judge(data, n, g, g); err != nil {
			return blocks, err
		}
		if g > 0 {
			blocks++
		}
	}
	return blocks, nil
}

// compareFiles looks into the file system behind the blocks.
func compareFiles(image, dir string, acked []uint32) (files int, err error) {
	system := image + ".ext4"
	if err := errors.Join(os.Mkdir(dir, 0o700), part(image, system)); err != nil {
		return 0, err
	}
	for _, command := range [][]string{{"e2fsck", "-fn", system}, {"debugfs", "-R", "rdump / " + dir, system}} {
		if said, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return 0, fmt.Errorf("%s: %w: %s", command[0], err, said)
		}
	}
	for n, g := range acked {
		if g == 0 {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, writers.Name(n)))
		if err != nil {
			return files, err
		}
		if err := generations.Judge(data, n, g, g); err != nil {
			return files, fmt.Errorf("file: %w", err)
		}
		files++
	}
	return files, nil
}

// part copies what follows the blocks.
func part(image, to string) error {
	in, err := os.Open(image)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(in, diskBytes, volumeBytes-diskBytes))
	return errors.Join(err, out.Close())
}
