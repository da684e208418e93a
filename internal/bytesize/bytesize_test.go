package bytesize

import "testing"

func TestText(t *testing.T) {
	for bytes, want := range map[uint64]string{
		0: "0B", 1023: "1023B", 1024: "1KiB", 1536: "1.5KiB", 1 << 20: "1MiB", 1023 << 10: "0.999MiB", 10 << 30: "10GiB",
		1234567: "1.18MiB", 1<<64 - 1: "16EiB",
	} {
		if got := Text(bytes); got != want {
			t.Errorf("%d: found %s, expected %s", bytes, got, want)
		}
	}
	if got := Text(int64(-1)); got != "0B" {
		t.Errorf("-1: found %s", got)
	}
}
