// Command manual writes the man page of a program and its completions for shells, from
// the description that the program gives of its command line.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/alecthomas/kong"

	"lunar/internal/cli"
)

type commandLine struct {
	Program string `required:"" type:"existingfile" help:"The program."`
	Name    string `required:"" help:"Its name where it is installed."`
	Section int    `default:"8" help:"Section of the manual."`
	Date    string `required:"" help:"Date of the page."`
	Version string `required:"" help:"Version of the program."`
	Out     string `required:"" type:"path" help:"Directory of what is written."`
}

func main() {
	var k commandLine
	kong.Parse(&k, kong.Description("Write the man page and the completions of a program."))
	if err := k.write(); err != nil {
		fmt.Fprintf(os.Stderr, "manual: %v\n", err)
		os.Exit(1)
	}
}

func (k commandLine) write() error {
	text, err := exec.Command(k.Program, "__describe").Output()
	if err != nil {
		return fmt.Errorf("%s __describe: %w", k.Program, err)
	}
	var program cli.Described
	if err := json.Unmarshal(text, &program); err != nil {
		return fmt.Errorf("%s __describe: %w", k.Program, err)
	}
	program.Name = k.Name
	for name, text := range map[string]string{
		fmt.Sprintf("%s.%d", k.Name, k.Section): page(program, k.Section, k.Date, k.Version),
		k.Name + ".bash":                        bash(program),
		"_" + k.Name:                            zsh(program),
		k.Name + ".fish":                        fish(program),
	} {
		if err := os.WriteFile(filepath.Join(k.Out, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
