// Command image writes an OCI image of the server, as the archive of a layout that holds
// an image for each architecture. It needs no daemon and no registry, and the same files
// make the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is who the server is in a container: without a name, which nothing there needs.
const user = 3260

type commandLine struct {
	Root    []string  `required:"" placeholder:"ARCH=DIR" help:"Directory of the files of an architecture's image; repeatable."`
	Version string    `required:"" help:"Version of the server."`
	Date    time.Time `required:"" help:"Date of everything in it."`
	Out     string    `required:"" type:"path" help:"The archive."`
}

func main() {
	var k commandLine
	kong.Parse(&k, kong.Description("Write an OCI image."))
	if err := k.write(); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

func (k commandLine) write() error {
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, root := range k.Root {
		arch, dir, ok := strings.Cut(root, "=")
		if !ok {
			return fmt.Errorf("found --root %s, expected ARCH=DIR", root)
		}
		image, err := k.image(arch, dir)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform:    &v1.Platform{OS: "linux", Architecture: arch},
			Annotations: map[string]string{"org.opencontainers.image.ref.name": k.Version},
		}})
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	archive, err := k.archive(dir, 0)
	if err != nil {
		return err
	}
	return os.WriteFile(k.Out, archive, 0o644)
}

// image is that of one architecture.
func (k commandLine) image(arch, root string) (v1.Image, error) {
	files, err := k.archive(root, user)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: k.Date}, CreatedBy: "make dist"}}); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: k.Date}
	config.Config = v1.Config{
		User:         fmt.Sprintf("%d:%[1]d", user),
		Env:          []string{"PATH=/usr/bin"},
		Entrypoint:   []string{"/usr/libexec/lunar/tgtd"},
		Cmd:          []string{"serve", "-c", "/etc/lunar/tgtd.yaml", "--state-dir", "/var/lib/lunar", "--socket", "/run/lunar/control.sock"},
		ExposedPorts: map[string]struct{}{"3260/tcp": {}},
		Volumes:      map[string]struct{}{"/var/lib/lunar": {}},
		StopSignal:   "SIGTERM",
		Labels:       map[string]string{"org.opencontainers.image.title": "Lunar", "org.opencontainers.image.version": k.Version, "org.opencontainers.image.licenses": "Apache-2.0"},
	}
	return mutate.ConfigFile(image, config)
}

// archive is a directory as a tar file, in the order of names, owned by one user.
func (k commandLine) archive(root string, owner int) ([]byte, error) {
	var paths []string
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, path := range paths[1:] {
		if err := k.add(w, root, path, owner); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return out.Bytes(), err
}

func (k commandLine) add(w *tar.Writer, root, path string, owner int) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: k.Date, Uid: owner, Gid: owner, Typeflag: tar.TypeReg, Size: info.Size(), Format: tar.FormatPAX}
	if info.IsDir() {
		h.Name, h.Typeflag, h.Size = name+"/", tar.TypeDir, 0
	}
	if err := w.WriteHeader(h); err != nil || info.IsDir() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
