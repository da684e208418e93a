package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"lunar/internal/initiator/load"
)

// fioDirect reads and writes a file itself, past the page cache: what the device can do.
func fioDirect(file string) *tool {
	return &tool{name: tgtload.name, arguments: func(c client, _ *server, w workload, runtime time.Duration) []string {
		line := []string{"fio", "--name=bench", "--filename=" + file, "--direct=1", "--ioengine=libaio", "--rw=" + w.rw, "--rwmixread=" + mixedReads,
			fmt.Sprintf("--bs=%dk", w.kib), "--iodepth=" + strconv.Itoa(w.depth), "--time_based", "--randrepeat=0", "--norandommap", "--output-format=json",
			fmt.Sprintf("--ramp_time=%dms", c.plan.warmup.Milliseconds()), fmt.Sprintf("--runtime=%dms", runtime.Milliseconds())}
		if w.span > 0 {
			line = append(line, fmt.Sprintf("--size=%dm", w.span))
		}
		return line
	}, result: fioResult}
}

// fioSide is what fio says of reads or writes.
type fioSide struct {
	IOPS    float64 `json:"iops"`
	Bytes   float64 `json:"bw_bytes"`
	Latency struct {
		Mean       float64
		Percentile map[string]float64
	} `json:"clat_ns"`
}

// fioResult has the latency of reads where there are some.
func fioResult(out []byte, _ workload, _ usage) (*load.Result, error) {
	var said struct {
		Jobs []struct {
			Read, Write fioSide
			User        float64 `json:"usr_cpu"`
			System      float64 `json:"sys_cpu"`
		}
	}
	if err := json.Unmarshal(out, &said); err != nil || len(said.Jobs) != 1 {
		return nil, fmt.Errorf("fio's result %s: %w, expected one job", out, err)
	}
	j := said.Jobs[0]
	rate, side := j.Read.IOPS+j.Write.IOPS, j.Read
	if side.IOPS == 0 {
		side = j.Write
	}
	if rate == 0 {
		return nil, fmt.Errorf("fio's result %s: expected a rate", out)
	}
	busy := (j.User + j.System) / 100
	cpu := load.CPU{Seconds: busy, PerIO: busy * 1e6 / rate}
	us := func(percentile string) float64 { return side.Latency.Percentile[percentile] / 1e3 }
	return &load.Result{Seconds: 1, IOPS: rate, BytesPerSecond: j.Read.Bytes + j.Write.Bytes, ServerCPU: &cpu, ClientCPU: cpu, ClientBusy: busy,
		Latency:     load.Latency{Mean: side.Latency.Mean / 1e3, P50: us("50.000000"), P99: us("99.000000")},
		Connections: load.Spread{Count: 1, Min: rate, Mean: rate, Max: rate}}, nil
}
