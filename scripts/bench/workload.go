package main

import (
	"fmt"
	"slices"
	"strconv"
)

// workload is one row of the matrix.
type workload struct {
	name        string
	title       string
	rw          string
	blockSize   string
	depth       int
	connections int
}

var matrix = []workload{
	{"read-32", "4 KiB random read, depth 32", "randread", "4k", 32, 1},
	{"read-1", "4 KiB random read, depth 1", "randread", "4k", 1, 1},
	{"write-32", "4 KiB random write, depth 32", "randwrite", "4k", 32, 1},
	{"read-256k", "256 KiB sequential read, depth 8", "read", "256k", 8, 1},
	{"write-256k", "256 KiB sequential write, depth 8", "write", "256k", 8, 1},
	{"read-8x32", "4 KiB random read, 8 connections of depth 32", "randread", "4k", 32, 8},
}

// arguments are tgtload's.
func (w workload) arguments() []string {
	return []string{"--rw", w.rw, "--bs", w.blockSize, "--depth", strconv.Itoa(w.depth), "--connections", strconv.Itoa(w.connections)}
}

// selected returns the workloads with these names, all without names.
func selected(names []string) ([]workload, error) {
	if len(names) == 0 {
		return matrix, nil
	}
	var list []workload
	for _, name := range names {
		i := slices.IndexFunc(matrix, func(w workload) bool { return w.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no workload %q", name)
		}
		list = append(list, matrix[i])
	}
	return list, nil
}
