package generations

import (
	"errors"
	"testing"
)

func TestJudge(t *testing.T) {
	written := func(n int, g uint32) []byte {
		data := make([]byte, BlockBytes)
		Fill(data, n, g)
		return data
	}
	torn := written(3, 7)
	copy(torn[2048:], written(3, 6))
	for _, c := range []struct {
		name        string
		data        []byte
		least, most uint32
		want        error
	}{
		{"as acknowledged", written(3, 7), 7, 7, nil},
		{"under way", written(3, 8), 7, 8, nil},
		{"never written", make([]byte, BlockBytes), 0, 1, nil},
		{"older", written(3, 6), 7, 7, ErrStale},
		{"gone", make([]byte, BlockBytes), 1, 1, ErrStale},
		{"never sent", written(3, 8), 7, 7, ErrLost},
		{"of another block", written(4, 7), 7, 7, ErrLost},
		{"torn", torn, 7, 7, ErrLost},
		{"short", written(3, 7)[1:], 7, 7, ErrLost},
	} {
		if err := Judge(c.data, 3, c.least, c.most); !errors.Is(err, c.want) {
			t.Errorf("%s: found %v, expected %v", c.name, err, c.want)
		}
	}
}
