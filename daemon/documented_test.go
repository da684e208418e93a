package daemon

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// documents are the pages whose command lines are tried.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatal(pages, err)
	}
	return append(pages, "../README.md")
}

// foreign are programs of command lines that this test does not run, with where they are
// run. A page with another program needs a row, or a fence of another language than sh.
var foreign = map[string]string{
	"make": "the Makefile's targets are the tests themselves", "install": "writes to the system", "apt-get": "changes the machine", "apt": "changes the machine", "dpkg": "changes the machine",
	"iscsiadm": "needs Linux' initiator: make lab", "lsblk": "needs Linux' initiator: make lab", "multipath": "make lab", "mkfs.ext4": "needs a disk", "mount": "needs a disk",
	"modprobe": "needs a kernel module: make lab", "rdma": "make lab", "rping": "needs RDMA hardware", "ibv_devinfo": "needs RDMA hardware", "sg_sanitize": "needs a disk: make lab", "sg_inq": "make lab", "sg_vpd": "make lab",
	"useradd": "changes the machine", "setpriv": "daemon/unprivileged_test.go", "wg": "changes the network", "ip": "changes the network", "nft": "changes the network",
	"umask": "is of the shell", "mkdir": "of the system's directories", "mv": "of the system's directories", "cp": "of the system's directories", "T": "is of the shell", "openssl": "a key of random bytes", "curl": "control/server/main_test.go asks for the same paths",
	"systemctl": "needs systemd: scripts/lab", "journalctl": "needs systemd", "podman": "needs a container runtime", "docker": "needs a container runtime", "scripts/fio/run.sh": "needs a disk: make conformance", "virsh": "needs libvirt", "rbd": "needs Ceph: scripts/lab/ceph", "qemu-img": "scripts/conformance/qemu-img.sh", "qemu-io": "scripts/conformance/qemu-img.sh", "kubectl": "needs Kubernetes", "pvesm": "needs Proxmox",
	"promtool": "the test of the alert rules", "tgtload": "make conformance", "build/tgtd": "as tgtd", "rpm": "changes the machine", "dnf": "changes the machine",
}

// codeLine is a line of code of a page.
type codeLine struct {
	page, text string
	number     int
	command    bool // the program that it begins with is one that is run by people
}

// program is the first word of a line.
func (l *codeLine) program() string {
	return strings.FieldsFunc(l.text+" ", func(r rune) bool { return strings.ContainsRune(" =;(", r) })[0]
}

// codeLines are the lines of indented and fenced code, of which continued ones are one. In a
// block with a known program all lines are commands, or those behind a prompt if one has that.
func codeLines(page, text string) (out []codeLine) {
	fence, before := false, ""
	var block []codeLine
	end := func() {
		prompts := slices.ContainsFunc(block, func(l codeLine) bool { return strings.HasPrefix(l.text, "# ") && known(strings.Fields(l.text)[1]) })
		shell := prompts || slices.ContainsFunc(block, func(l codeLine) bool { return known(l.program()) })
		for _, l := range block {
			rest, prompt := strings.CutPrefix(l.text, "# ")
			l.command = shell && (prompt || !prompts) && (!prompt || known(strings.Fields(rest)[0]))
			if prompt {
				l.text = rest
			}
			out = append(out, l)
		}
		block = nil
	}
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			fence = !fence
			end()
			continue
		}
		if !fence && !strings.HasPrefix(line, "    ") || trimmed == "" {
			end()
			continue
		}
		if rest, more := strings.CutSuffix(before+trimmed, `\`); more {
			before = rest
			continue
		}
		trimmed, before = before+trimmed, ""
		block = append(block, codeLine{page, trimmed, i + 1, false})
	}
	end()
	return out
}

func known(program string) bool {
	_, ok := foreign[program]
	return ok || slices.Contains(ours, program)
}

// ours are the programs whose command lines are run.
var ours = []string{"lunar", "tgtd", "lunar-tgtd"}

// placeholders of command lines, and lines, are replaced by what the server of this test has.
var placeholders = strings.NewReplacer(
	"iqn.1993-08.org.debian:01:abc", "iqn.2026-11.example:db1", "INITIATOR", "iqn.2026-11.example:db1", " TARGET", " iqn.2026-11.example.san:disk", "VOLUME", "disk", "PORTAL", "lan", "SESSION", "1", "NAME", "disk",
	"192.0.2.1:3260", "127.0.0.1:FIRST", "192.0.2.2", "127.0.0.9",
)

// otherwise are command lines of which the exit status is another than 0 in the server of
// this test, or that are not run, status -1, with the reason.
var otherwise = map[string]struct {
	status int
	why    string
}{
	"tgtd serve -c /etc/lunar/tgtd.yaml":                                          {-1, "it is what serves here"},
	"lunar volume scrub db":                                                       {cli.ExitFailure, "a mirror: daemon/mirror_test.go"},
	"lunar volume checksum copy --expect DIGITS":                                  {cli.ExitFailure, "a volume that was received: daemon/moves_test.go"},
	"tgtd qtcp load --user lunar":                                                 {-1, "needs a kernel with BPF and root: target/tcp/kernelqtcp"},
	"lunar rescan disk":                                                           {cli.ExitFailure, "the volume has a configured size"},
	"lunar detach disk":                                                           {cli.ExitFailure, "the volume was not removed: daemon/detach_test.go"},
	"lunar detach disk --discard":                                                 {cli.ExitFailure, "the volume was not removed: daemon/detach_test.go"},
	"lunar kick iqn.1993-08.org.debian:01:abc":                                    {cli.ExitFailure, "nobody has a session: daemon/admin_test.go"},
	"lunar encrypt --keep-data /etc/lunar/tgtd.yaml disk":                         {-1, "a volume of that page's configuration: daemon/offline/rewrite_test.go"},
	"lunar encrypt --give-up-data /etc/lunar/tgtd.yaml fast":                      {-1, "a volume of that page's configuration: daemon/encryption_test.go"},
	"lunar status --server https://192.0.2.1:9261 --ca ca.pem --token-file token": {-1, "needs certificates: control/server/access_test.go"},
	"lunar volume freeze db log --exec 'lvcreate --snapshot --name db-snap --size 10G vg0/db && lvcreate --snapshot --name log-snap --size 10G vg0/log'": {-1, "needs LVM: daemon/freeze_test.go"},
	"lunar cluster init prod --node n1 --address 192.0.2.1": {-1, "a cluster's: cluster/member"},
	"lunar cluster token": {-1, "a cluster's: cluster/member"},
	"lunar cluster join TOKEN --node n2 --address 192.0.2.2":               {-1, "a cluster's: cluster/member"},
	"lunar cluster join TOKEN --node n3 --address 192.0.2.3":               {-1, "a cluster's: cluster/member"},
	"lunar apply --cluster /etc/lunar/cluster.yaml":                        {-1, "a node's: daemon/joint_test.go"},
	"lunar cluster config show > cluster.yaml":                             {-1, "a node's: daemon/joint_test.go"},
	"lunar apply --cluster cluster.yaml --dry-run":                         {-1, "a node's: daemon/joint_test.go"},
	"lunar apply --cluster cluster.yaml":                                   {-1, "a node's: daemon/joint_test.go"},
	"lunar cluster config history":                                         {cli.ExitFailure, "a node's: daemon/joint_test.go"},
	"lunar cluster config rollback 3":                                      {cli.ExitFailure, "a node's: daemon/joint_test.go"},
	"lunar cluster status":                                                 {cli.ExitFailure, "a node's: daemon/cluster_test.go"},
	"lunar qos show --cluster":                                             {cli.ExitFailure, "a node's: daemon/promise_test.go"},
	"lunar cluster move db n2":                                             {cli.ExitFailure, "a node's: daemon/cluster_test.go"},
	"lunar cluster drain n1":                                               {cli.ExitFailure, "a node's: daemon/cluster_test.go"},
	"lunar cluster drain n1 --off":                                         {cli.ExitFailure, "a node's: daemon/cluster_test.go"},
	"lunar cluster fence n1":                                               {cli.ExitFailure, "a node's"},
	"lunar cluster header save db /root/db.header":                         {cli.ExitFailure, "a node's: cmd/lunar/admin"},
	"lunar cluster header restore db /root/db.header":                      {cli.ExitFailure, "a node's: cmd/lunar/admin"},
	"lunar cluster header remove db":                                       {cli.ExitFailure, "a node's: cmd/lunar/admin"},
	"lunar cluster log -f":                                                 {-1, "it does not end"},
	"lunar status --watch":                                                 {-1, "it does not end: TestWatch"},
	"lunar why iqn.1993-08.org.debian:01:abc iqn.2026-11.example.san:disk": {cli.ExitOK, "its user is looked at"},
}

const documentedConfig = `
portal-groups: {lan: {listen: ["127.0.0.1:0"], tag: 1}, san: {listen: ["127.0.0.1:0"], tag: 2}, fast: {listen: ["127.0.0.1:0"], tag: 3}, slow: {listen: ["127.0.0.1:0"], tag: 4}, b: {listen: ["127.0.0.1:0"], tag: 5}}
auth-groups: {hosts: {chap: [{user: host1, secret: "twelve bytes or more"}]}}
volumes: {disk: {type: file, path: DIR/disk.img, size: 1MiB}}
targets: {"iqn.2026-11.example.san:disk": {auth-group: hosts, luns: {0: disk}}}
qos:
  rules: [{name: databases, initiators: ["iqn.2026-11.example:db*"], limit: 20000, burst: 100}]
`

// TestDocumentedCommands: command lines of the pages are run as they stand there, page by page
// from the top; only names and paths are others.
func TestDocumentedCommands(t *testing.T) {
	run := 0
	for _, page := range documents(t) {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var c *controlled
		text, _, _ := strings.Cut(string(raw), "<!-- tgtd -->") // what follows in docs/commands.md is from the program itself
		for _, line := range codeLines(page, text) {
			program := line.program()
			if !slices.Contains(ours, program) {
				if line.command && !known(program) {
					t.Errorf("%s:%d: found the program %q, expected lunar, tgtd, or one of the list foreign of this test, which says where it is run", page, line.number, program)
				}
				continue
			}
			if c == nil {
				c = documentedServer(t)
			}
			run++
			c.documented(line)
		}
		if c != nil {
			c.stop()
		}
	}
	if run < 30 {
		t.Errorf("found %d command lines", run)
	}
}

func documentedServer(t *testing.T) *controlled {
	c := &controlled{t: t, dir: t.TempDir()}
	c.file = filepath.Join(c.dir, "tgtd.yaml")
	writeFile(t, c.file, strings.ReplaceAll(documentedConfig, "DIR", c.dir))
	for _, secret := range []string{"host7.secret", "host7.new", "san.secret"} {
		writeFile(t, filepath.Join(c.dir, secret), "the contents of "+secret+"\n")
	}
	c.serving = serve(t, "-c", c.file, "--state-dir", c.dir)
	return c
}

// documented runs a line. A shell takes it apart.
func (c *controlled) documented(line codeLine) {
	c.t.Helper()
	text := strings.TrimSpace(strings.Split(line.text, "   #")[0])
	expected := otherwise[text]
	if expected.status < 0 {
		return
	}
	port := c.portal[strings.LastIndexByte(c.portal, ':')+1:]
	text = strings.NewReplacer("/etc/lunar/imported.yaml", c.dir+"/imported.yaml", "/etc/lunar/tgtd.yaml", c.file, "/etc/lunar/", c.dir+"/", "FIRST", port, "/srv/", c.dir+"/", "/etc/target/saveconfig.json", "../conf/foreign/testdata/lio.json").Replace(placeholders.Replace(text))
	words, err := exec.Command("sh", "-c", "set -- "+text+`; printf '%s\n' "$@"`).Output()
	if err != nil {
		c.t.Errorf("%s:%d: %s: %v", line.page, line.number, line.text, err)
		return
	}
	args := strings.Split(strings.TrimSuffix(string(words), "\n"), "\n")[1:]
	if !slices.Contains([]string{"import", "version"}, args[0]) {
		args = append(args, "--state-dir", c.dir)
	}
	var out, messages eventually.Output
	if status := run(c.t.Context(), args, cli.Console{Out: &out, Err: &messages}); status != expected.status {
		c.t.Errorf("%s:%d: %s: found exit status %d, expected %d %s: %s%s", line.page, line.number, line.text, status, expected.status, expected.why, out.String(), messages.String())
	}
}

var spans = regexp.MustCompile("`((?:lunar|tgtd) [^`]+)`")

// TestMentionedCommands: every command line that the text mentions is one that the program has.
func TestMentionedCommands(t *testing.T) {
	model := kong.Must(&commandLine{}, kong.Name("x"), kong.Vars{"version": ""}).Model
	for _, page := range documents(t) {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range spans.FindAllStringSubmatch(string(raw), -1) {
			if wrong := notInGrammar(model.Node, strings.Fields(m[1])[1:]); wrong != "" {
				t.Errorf("%s: `%s`: found %s, which the program does not have", page, m[1], wrong)
			}
		}
	}
}

// notInGrammar is the word or flag of a command line that is none.
func notInGrammar(n *kong.Node, words []string) string {
	for _, word := range words {
		switch {
		case strings.HasPrefix(word, "-"):
			name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
			if name != "help" && name != "version" && !slices.ContainsFunc(flagsOf(n), func(f *kong.Flag) bool {
				return f.Name == name || "no-"+f.Name == name || f.Short != 0 && string(f.Short) == name
			}) {
				return word
			}
		case len(n.Children) > 0:
			for _, part := range strings.Split(word, "|") {
				i := slices.IndexFunc(n.Children, func(c *kong.Node) bool { return c.Name == part || slices.Contains(c.Aliases, part) })
				if i < 0 {
					return word
				}
				if part == word {
					n = n.Children[i]
				}
			}
			if strings.Contains(word, "|") {
				return ""
			}
		}
	}
	return ""
}

func flagsOf(n *kong.Node) (all []*kong.Flag) {
	for ; n != nil; n = n.Parent {
		all = append(all, n.Flags...)
	}
	return all
}
