package admin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"lunar/conf"
	"lunar/conf/foreign"
	"lunar/internal/bytesize"
	"lunar/internal/cli"
)

type importCommand struct {
	Format string `arg:"" enum:"lio,tgt,gotgt,scst,ctld,spdk" help:"Whose configuration it is: lio (saveconfig.json of targetcli), tgt (targets.conf), gotgt (config.json), scst (scst.conf), ctld (ctl.conf of FreeBSD and TrueNAS) or spdk (what save_config writes)."`
	File   string `arg:"" type:"path" help:"The configuration of the other target."`
	Output string `short:"o" placeholder:"FILE" type:"path" help:"File that the configuration is written to, which must not be there. It has the secrets, and only its owner may read it. Default: standard output."`
}

// Run makes a configuration of another target's.
func (k importCommand) Run(c cli.Console) error {
	data, err := readAtMost(k.File)
	if err != nil {
		return err
	}
	made, err := foreign.Convert(k.Format, foreign.File{Name: k.File, Data: data}, included)
	if err != nil {
		return err
	}
	for _, n := range append(made.Notes, sizeNotes(made)...) {
		fmt.Fprintf(c.Err, "%s: %s\n", k.File, n)
	}
	if k.Output == "" {
		_, err := c.Out.Write(made.YAML)
		return err
	}
	out, err := os.OpenFile(k.Output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: found a file, expected none: lunar import replaces no configuration; give another name", k.Output)
	}
	if err != nil {
		return err
	}
	_, err = out.Write(made.YAML)
	return errors.Join(err, out.Close())
}

// readAtMost reads a file of a length that foreign reads, and a byte.
func readAtMost(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, foreign.MaxFile+1))
}

// included are the files of a pattern.
func included(pattern string) (files []foreign.File, err error) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	for _, path := range paths {
		data, err := readAtMost(path)
		if err != nil {
			return nil, err
		}
		files = append(files, foreign.File{Name: path, Data: data})
	}
	return files, nil
}

// sizeNotes compare the files that there are with what the text says of them: Lunar
// serves them whole.
func sizeNotes(made *foreign.Converted) (notes []foreign.Note) {
	cfg, _, err := conf.ParseDraft("import", made.YAML)
	if err != nil {
		return nil // foreign has seen to it
	}
	for i := range cfg.Volumes {
		v := &cfg.Volumes[i]
		size, known := made.Sizes[v.Name]
		info, err := os.Stat(v.Path)
		if known && err == nil && info.Mode().IsRegular() && info.Size() != size {
			notes = append(notes, foreign.Note{
				What:   fmt.Sprintf("volume %s: %s has %s, and initiators saw %s of it", v.Name, v.Path, bytesize.Text(info.Size()), bytesize.Text(size)),
				Advice: "a disk that grows is no trouble; one that shrinks loses what is behind its end",
			})
		}
	}
	return notes
}
