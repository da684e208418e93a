package conf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

const wantType = "one of file, block, ram, null, gotgt, mirror, rbd"

// volumeKeys are the keys that only some types have.
var volumeKeys = map[string][]VolumeType{
	"driver":         {GotgtVolume},
	"ceph":           {RBDVolume},
	"image":          {RBDVolume},
	"owners":         {RBDVolume},
	"failback":       {RBDVolume},
	"path":           {FileVolume, BlockVolume, GotgtVolume},
	"size":           {FileVolume, RAMVolume, NullVolume, GotgtVolume, MirrorVolume},
	"direct":         {FileVolume, BlockVolume},
	"write":          {FileVolume, BlockVolume, GotgtVolume, MirrorVolume, RBDVolume},
	"cache":          {FileVolume, BlockVolume, GotgtVolume, MirrorVolume, RBDVolume},
	"soft-threshold": {FileVolume},
	"snapshots":      {FileVolume, RBDVolume},

	"protection":      {FileVolume, BlockVolume, MirrorVolume},
	"protection-file": {FileVolume, BlockVolume, MirrorVolume},
	"encryption":      {FileVolume, BlockVolume, MirrorVolume, RBDVolume},

	"members": {MirrorVolume},
	"map":     {MirrorVolume},
	"held":    {MirrorVolume},
	"window":  {MirrorVolume},

	"excess":        {FileVolume, BlockVolume},
	"excess-size":   {FileVolume, BlockVolume},
	"excess-writes": {FileVolume, BlockVolume},
}

// driverKeys are the keys of type gotgt that only some drivers have.
var driverKeys = map[string][]Driver{
	"path":  {FileDriver},
	"size":  {NullDriver},
	"write": {FileDriver},
	"cache": {FileDriver},
}

// may reports whether a volume may have a key, which some volumes have.
func (v *Volume) may(key string) bool {
	types, some := volumeKeys[key]
	if some && !slices.Contains(types, v.Type) {
		return false
	}
	drivers, some := driverKeys[key]
	return !some || v.Type != GotgtVolume || slices.Contains(drivers, v.Driver)
}

func (d *decoder) volumes(n node, c *Config) {
	var v Volume
	keys := fields{ // made once: there may be thousands of volumes
		"type":                orNull(&v.Type, NullVolume, oneOf(&v.Type, FileVolume, BlockVolume, RAMVolume, NullVolume, GotgtVolume, MirrorVolume, RBDVolume)),
		"driver":              orNull(&v.Driver, NullDriver, oneOf(&v.Driver, FileDriver, NullDriver)),
		"ceph":                text(&v.Ceph, "the name of a cluster in ceph", objectName.MatchString),
		"image":               text(&v.Image, wantImage, imageName.MatchString),
		"owners":              each(&v.Owners, nodeName),
		"failback":            oneOf(&v.Failback, ManualFailback, AutoFailback),
		"path":                text(&v.Path, "a path", validPath),
		"size":                size(&v.Size, 1, MiB, 1<<20*TiB),
		"block-size":          blockSize(&v.BlockSize),
		"direct":              boolean(&v.Direct),
		"physical-block-size": blockSize(&v.PhysicalBlockSize),
		"removable":           boolean(&v.Removable),
		"snapshots":           snapshotSchedule(&v),
		"sanitize-rate":       size(&v.SanitizeRate, 1, MiB, 1<<20*TiB),
		"soft-threshold":      size(&v.SoftThreshold, 1, MiB, 1<<20*TiB),
		"write":               oneOf(&v.Write, WriteThrough, WriteBack, WriteSync),
		"read-only":           boolean(&v.ReadOnly),
		"threads":             count(&v.Threads, 1024),
		"serial":              serial(&v.Serial),
		"naa":                 naa(&v.NAA),
		"cache":               volumeCache(&v),
		"vendor":              printable(&v.Vendor, 8),
		"product":             printable(&v.Product, 16),
		"revision":            printable(&v.Revision, 4),
		"designators":         each(&v.Designators, designator),

		"protection":      protectionType(&v.Protection),
		"protection-file": text(&v.ProtectionFile, "a path", validPath),
		"encryption":      volumeEncryption(&v),

		"members": each(&v.Members, volumePath),
		"map":     text(&v.Map, "a path", validPath),
		"held":    size(&v.Held, MiB, 8*MiB, TiB),
		"window":  duration(&v.Window, 10*time.Millisecond, time.Minute),

		"excess":        text(&v.Excess, "a path", validPath),
		"excess-size":   size(&v.ExcessSize, MiB, 16*MiB, 1<<20*TiB),
		"excess-writes": count(&v.ExcessWrites, 100_000_000),
	}
	d.named(n, naming{objectName.MatchString, wantObjectName, aMapping}, func(name string, n node) {
		v = Volume{Name: name, BlockSize: 512, Write: WriteThrough}
		if d.mapping(n, keys) {
			d.fitsType(n, &v)
		}
		c.Volumes = append(c.Volumes, v)
	})
}

// orNull accepts what word does, and null without quotes as well.
func orNull[T ~string](to *T, null T, word setter) setter {
	return func(d *decoder, n node) {
		if found, ok := n.ast.(*ast.NullNode); ok && d.src.hasWord(placeOf(found.Token), "null") {
			*to = null
			return
		}
		word(d, n)
	}
}

// fitsType checks that the keys fit the type.
func (d *decoder) fitsType(n node, v *Volume) {
	d.require(n, "type", wantType)
	if v.Type == "" {
		return
	}
	for key, types := range volumeKeys {
		switch {
		case v.may(key) || !d.has(n, key):
		case !slices.Contains(types, v.Type):
			d.fail(n.path+"."+key, "a key that type "+string(v.Type)+" does not have", "it with type "+join(types))
		case v.Driver != "":
			d.fail(n.path+"."+key, "a key that driver "+string(v.Driver)+" does not have", "it with driver "+join(driverKeys[key]))
		}
	}
	if v.PhysicalBlockSize != 0 && v.PhysicalBlockSize < v.BlockSize {
		d.fail(n.path+".physical-block-size", strconv.Itoa(v.PhysicalBlockSize), fmt.Sprintf("%d or more: the block-size", v.BlockSize))
	}
	switch {
	case v.ProtectionFile != "" && v.Protection == 0:
		d.fail(n.path+".protection-file", "a file for protection information, and none is kept", "protection: 1, 2 or 3 beside it")
	case v.Protection != 0 && v.ProtectionFile == "" && v.Type == FileVolume:
		v.ProtectionFile = v.Path + TuplesSuffix
	case v.Protection != 0:
		d.require(n, "protection-file", "the path of a file that keeps the protection information, of 8 bytes for each block")
	}
	d.fitsEncryption(n, v)
	d.fitsWindows(n, v)
	d.fitsSnapshots(n, v)
	if v.NAA != "" && v.Designators != nil {
		d.fail(n.path+".naa", "naa beside designators", "one of them: designators are all that names the volume in VPD page 83h")
	}
	switch v.Type {
	case FileVolume:
		if v.Cache != nil && !d.has(n, "direct") {
			v.Direct, v.MayBuffer = true, true
		}
		d.require(n, "path", "the path of the file")
	case BlockVolume:
		v.Direct = v.Direct || !d.has(n, "direct")
		d.require(n, "path", "the path of the device, such as /dev/vg0/disk")
		if v.Path != "" && !strings.HasPrefix(v.Path, "/") {
			d.fail(n.path+".path", quote(v.Path), "an absolute path")
		}
	case RAMVolume, NullVolume:
		d.require(n, "size", "a size such as 1GiB")
	case RBDVolume:
		d.require(n, "ceph", "the name of a cluster in ceph")
		d.require(n, "image", wantImage)
	case GotgtVolume:
		d.require(n, "driver", "one of file, null")
		switch v.Driver {
		case FileDriver:
			d.require(n, "path", "the path of the file")
		case NullDriver:
			d.require(n, "size", "a size such as 1GiB")
		}
	}
}

func join[T ~string](words []T) string {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = string(w)
	}
	return strings.Join(names, ", ")
}

func blockSize(to *int) setter {
	return parsed(to, "512 or 4096", func(s string) (int, bool) {
		switch s {
		case "512":
			return 512, true
		case "4096":
			return 4096, true
		}
		return 0, false
	})
}

func protectionType(to *int) setter {
	return parsed(to, "1, 2 or 3", func(s string) (int, bool) {
		v, err := strconv.Atoi(s)
		return v, err == nil && v >= 1 && v <= 3
	})
}
