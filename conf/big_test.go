package conf

import (
	"bytes"
	"fmt"
	"testing"
)

// bigFile has n volumes, each a LUN of a target of up to 200.
func bigFile(n int) []byte {
	var b bytes.Buffer
	b.WriteString("cache: {size: 1GiB}\nvolumes:\n")
	for i := range n {
		fmt.Fprintf(&b, "  v%d: {type: file, path: /srv/v%d.img, size: 1GiB, cache: true, naa: \"5%015x\"}\n", i, i, i)
	}
	b.WriteString("targets:\n")
	for i := 0; i < n; i += 200 {
		fmt.Fprintf(&b, "  iqn.2026-11.test:t%d:\n    luns:\n", i)
		for j := i; j < min(n, i+200); j++ {
			fmt.Fprintf(&b, "      %d: v%d\n", j-i, j)
		}
	}
	return b.Bytes()
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{2000, 8000, 32000, 200000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			data := bigFile(n)
			for b.Loop() {
				if _, _, err := Parse("big", data); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/volume")
		})
	}
}
