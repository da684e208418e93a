package main

import (
	"cmp"
	"debug/elf"
	"fmt"
	"regexp"
	"slices"
)

// function is a function of the binary.
type function struct {
	name       string
	start, end uint64
}

// symbols are the functions of the binary in order of address.
type symbols []function

func readSymbols(binary string) (symbols, error) {
	f, err := elf.Open(binary)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", binary, err)
	}
	if f.Type != elf.ET_EXEC {
		return nil, fmt.Errorf("%s: found %v, expected a program at fixed addresses", binary, f.Type)
	}
	var s symbols
	for _, e := range all {
		if elf.ST_TYPE(e.Info) == elf.STT_FUNC && e.Size > 1 {
			s = append(s, function{e.Name, e.Value, e.Value + e.Size})
		}
	}
	slices.SortFunc(s, func(a, b function) int { return cmp.Compare(a.start, b.start) })
	return s, nil
}

// at returns the function that an address lies in.
func (s symbols) at(address uint64) (function, bool) {
	i, exact := slices.BinarySearchFunc(s, address, func(f function, a uint64) int { return cmp.Compare(f.start, a) })
	if !exact {
		i--
	}
	if i < 0 || address >= s[i].end {
		return function{}, false
	}
	return s[i], true
}

// matching returns the functions whose names match.
func (s symbols) matching(pattern *regexp.Regexp) (found []function) {
	for _, f := range s {
		if pattern.MatchString(f.name) {
			found = append(found, f)
		}
	}
	return found
}
