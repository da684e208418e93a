package foreign

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files")

// samples are files of each format.
var samples = map[string]string{
	"lio": "lio.json", "tgt": "tgt.conf", "gotgt": "gotgt.json", "scst": "scst.conf", "ctld": "ctld.conf", "spdk": "spdk.json",
}

func sample(t testing.TB, format string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", samples[format]))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// drop is what the include line of tgt.conf finds.
func drop(pattern string) ([]File, error) {
	if pattern != "@DIR@/tgt.d/*.conf" {
		return nil, errors.New("no such file")
	}
	return []File{{"x.conf", []byte("<target iqn.2008-09.com.example:included>\nbacking-store @DIR@/x.img\n</target>\n")}}, nil
}

// TestSamples: a file of each format makes what it is expected to make, byte for byte.
func TestSamples(t *testing.T) {
	for _, format := range Formats {
		t.Run(format, func(t *testing.T) {
			c, err := Convert(format, File{samples[format], sample(t, format)}, drop)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", format+".yaml")
			if *rewrite {
				if err := os.WriteFile(golden, c.YAML, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(c.YAML, want) {
				t.Errorf("found\n%s\nexpected\n%s(-rewrite writes it)", c.YAML, want)
			}
			for _, n := range c.Notes {
				if !bytes.Contains(c.YAML, []byte("# - "+oneLine(n.String()))) {
					t.Errorf("the file does not tell that %s", n)
				}
			}
		})
	}
}

// TestRefused: what is no file of a format is an error with its line, and no word of it.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct{ format, text, want string }{
		"format":        {"ietd", "", "expected one of lio"},
		"no JSON":       {"lio", "{\n\"a\": top-secret-word}", "line 2"},
		"two documents": {"lio", `{"targets": []} {}`, "expected its end"},
		"depth":         {"spdk", strings.Repeat("[", 1000), "deep"},
		"nothing":       {"tgt", "# nothing\n", "neither a disk nor a target"},
		"block":         {"tgt", "<target iqn.2026-11.test:t>\n", "no end"},
		"end":           {"tgt", "</target>\n", "not begun"},
		"quotes":        {"ctld", "target \"top-secret-word", "line 1"},
		"brace":         {"scst", "HANDLER x {\n", "no }"},
		"UCL":           {"ctld", "portal-group { pg0 { listen = \"top-secret-word\" } }\n", "UCL"},
		"braces":        {"scst", "}\n", "without {"},
		"kind":          {"gotgt", `{"storages": "top-secret-word"}`, "another kind"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Convert(test.format, File{"f", []byte(test.text)}, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("found %v, expected an error with %q", err, test.want)
			}
		})
	}
}

// TestIdentityOfKnownDisks: designators that real initiators have seen.
func TestIdentityOfKnownDisks(t *testing.T) {
	// A disk of LIO in Linux 6.1, as the lab's scenario migration has seen it.
	v := &volume{vendor: "LIO-ORG", product: "accounts"}
	lioIdentity(v, "9bb4a4c8-2f31-4b0e-9d3c-6d1f0e5a7c21")
	if got := hexOf(v.designators); got != "0103001060014059bb4a4c82f314b0e9d3c6d1f0 "+
		"020100364c494f2d4f5247206163636f756e74733a39626234613463382d326633312d346230652d396433632d36643166306535613763323100 "+"0106000400000000 " {
		t.Errorf("LIO: found %s", got)
	}
	if v.serial != "9bb4a4c8-2f31-4b0e-9d3c-6d1f0e5a7c21\x00" {
		t.Errorf("LIO: found the serial number %q", v.serial)
	}
	// udev's name of the first LUN of the first target of tgt is
	// scsi-360000000000000000e00000000010001.
	v = &volume{}
	tgtIdentity(v, "", "", 1, 1)
	if got := hexOf(v.designators); got != "02010024"+"494554202020202030303031303030310000000000000000000000000000000000000000 "+"01030008"+"3000000100000001 "+"01030010"+"60000000000000000e00000000010001 " {
		t.Errorf("tgt: found %s", got)
	}
	if !strings.HasSuffix(v.serial, " beaf11") || len(v.serial) != 36 {
		t.Errorf("tgt: found the serial number %q", v.serial)
	}
	if slices.Contains(Formats, "") {
		t.Error("a format has no name")
	}
}
