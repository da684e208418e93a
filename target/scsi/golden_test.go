package scsi

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata")

// TestSupportedCommands compares the command table with the checked-in list, so
// that no command comes or goes, or changes what it looks at, by accident.
func TestSupportedCommands(t *testing.T) {
	const file = "testdata/commands.txt"
	var b strings.Builder
	for _, row := range commands {
		action := "--"
		if row.ServiceAction >= 0 {
			action = fmt.Sprintf("%02x", row.ServiceAction)
		}
		fmt.Fprintf(&b, "%02x %s %-45s flags=%02x access=%d conflict=%d reach=%d %x\n", row.Opcode, action, row.Name, row.Flags, row.Access, row.Conflict, row.Reach, row.Usage[:row.Length])
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("the commands are\n%s\nexpected (run with -rewrite if the change is wanted)\n%s", got, want)
	}
}

// TestTableIsSound: what the rows promise each other.
func TestTableIsSound(t *testing.T) {
	lengths := map[byte]int{0: 6, 1: 10, 2: 10, 3: 32, 4: 16, 5: 12}
	for _, row := range commands {
		at := 1 // of the service action
		if row.Opcode == variableLength {
			at = 9
		}
		if want := lengths[row.Opcode>>5]; row.Length != want {
			t.Errorf("%s: CDB of %d bytes, its group has %d", row.Name, row.Length, want)
		}
		if row.Usage[0] != row.Opcode {
			t.Errorf("%s: usage data begins with %02x", row.Name, row.Usage[0])
		}
		if row.ServiceAction >= 0 && row.Usage[at]&(serviceActions-1) != byte(row.ServiceAction) {
			t.Errorf("%s: usage data has service action %02x", row.Name, row.Usage[at])
		}
		if (row.List != nil) != (row.Flags&ParameterList != 0) || row.Run == nil {
			t.Errorf("%s: List without ParameterList, or the other way round, or no Run", row.Name)
		}
		cdb := CDB{row.Opcode}
		if cdb[at] = byte(max(0, row.ServiceAction)); row.Opcode == variableLength {
			cdb[7] = additionalLength
		}
		if found, s := lookup(&cdb); found != row {
			t.Errorf("%s is not found: %+v", row.Name, s)
		}
	}
}
