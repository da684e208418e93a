package evidence

import (
	"strings"
	"testing"

	"lunar/backstore"
)

// TestWhatMayBeAtAVolumesPath is the table of what may be at a volume's path.
func TestWhatMayBeAtAVolumesPath(t *testing.T) {
	own, other := backstore.Identity{System: "uuid 1", Inode: 7, Birth: 9}, backstore.Identity{System: "uuid 1", Inode: 8, Birth: 9}
	was := &Record{Path: "/v", Identity: own, Size: 100}
	at := func(i backstore.Identity, size int64) backstore.Found {
		return backstore.Found{Identity: i, Size: size}
	}
	gone := backstore.Found{Missing: true}
	interrupted, dirty := Pending{Interrupted: 2}, Pending{Dirty: 4096, Of: "for /v"}
	lost := Pending{LostLog: "/s/a.log"}
	for name, test := range map[string]struct {
		scene Scene
		want  Verdict
		why   string
	}{
		"new volume, no file":                   {Scene{"/v", nil, gone, Pending{}, None, ""}, Accept, ""},
		"new volume, a file":                    {Scene{"/v", nil, at(own, 5), Pending{}, None, ""}, Accept, ""},
		"new volume, dirty of it":               {Scene{"/v", nil, at(own, 5), dirty, None, ""}, Refuse, "4096 bytes of unwritten data for /v in the cache; at /v is inode 7"},
		"the same":                              {Scene{"/v", was, at(own, 100), interrupted, None, ""}, Accept, ""},
		"the same, log lost":                    {Scene{"/v", was, at(own, 100), lost, None, ""}, Refuse, "intent log /s/a.log: found no file, and there was one: /v may have"},
		"the same, lost, adopted":               {Scene{"/v", was, at(own, 100), lost, Adopt, ""}, Accept, ""},
		"replaced, log lost":                    {Scene{"/w", was, at(other, 100), lost, None, ""}, Refuse, "intent log /s/a.log"},
		"gone, log lost":                        {Scene{"/v", was, gone, lost, None, ""}, Refuse, "missing"},
		"grown":                                 {Scene{"/v", was, at(own, 200), Pending{}, None, ""}, Accept, ""},
		"cut":                                   {Scene{"/v", was, at(own, 99), Pending{}, None, ""}, Refuse, "has 99 bytes, the volume had 100"},
		"cut, moved":                            {Scene{"/w", was, at(own, 99), Pending{}, None, ""}, Refuse, "it was cut"},
		"cut, by intention":                     {Scene{"/v", was, at(own, 99), Pending{}, Adopt, ""}, Accept, ""},
		"gone":                                  {Scene{"/v", was, gone, Pending{}, None, ""}, Refuse, "is its file system mounted?"},
		"gone, by intention":                    {Scene{"/v", was, gone, Pending{}, Forget, ""}, Accept, ""},
		"gone, adopted":                         {Scene{"/v", was, gone, Pending{}, Adopt, ""}, Refuse, "missing"},
		"gone, with interrupted":                {Scene{"/w", was, gone, interrupted, None, ""}, Refuse, "missing"},
		"replaced":                              {Scene{"/v", was, at(other, 100), Pending{}, None, ""}, Note, "another store than before"},
		"replaced by a shorter one":             {Scene{"/v", was, at(other, 99), Pending{}, None, ""}, Refuse, "is its file system mounted?"},
		"replaced, with interrupted":            {Scene{"/v", was, at(other, 100), interrupted, None, ""}, Refuse, "2 interrupted atomic writes for what was at /v (inode 7, born 9, on uuid 1); at /v is inode 8"},
		"replaced, adopted":                     {Scene{"/v", was, at(other, 100), interrupted, Adopt, ""}, Accept, ""},
		"replaced, forgotten":                   {Scene{"/v", was, at(other, 9), Pending{5, "", 5, ""}, Forget, ""}, Accept, ""},
		"exchanged in place":                    {Scene{"/v", was, at(other, 100), Pending{}, None, "w"}, Refuse, "is the store of volume w"},
		"exchanged by paths":                    {Scene{"/w", was, at(other, 1), Pending{}, None, "w"}, Refuse, "were the two exchanged?"},
		"exchanged, adopted":                    {Scene{"/w", was, at(other, 100), Pending{}, Adopt, "w"}, Accept, ""},
		"moved":                                 {Scene{"/w", was, at(own, 100), interrupted, None, ""}, Note, "was in /v"},
		"moved, dirty":                          {Scene{"/w", was, at(own, 100), dirty, None, ""}, Refuse, "for what was at /v (inode 7, born 9, on uuid 1); at /w is inode 7"},
		"moved to another, dirty":               {Scene{"/w", was, at(other, 100), dirty, None, ""}, Refuse, "at /w is inode 8"},
		"another path, a new file":              {Scene{"/w", was, gone, Pending{}, None, ""}, Refuse, "/w is missing; the volume had 100 bytes in /v"},
		"another path, a new file by intention": {Scene{"/w", was, gone, Pending{}, Forget, ""}, Accept, ""},
		"another path, another store":           {Scene{"/w", was, at(other, 1), Pending{}, None, ""}, Note, "now in /w"},
	} {
		if got, why := Place(test.scene); got != test.want || !strings.Contains(why, test.why) {
			t.Errorf("%s: found %d, %q, expected %d with %q", name, got, why, test.want, test.why)
		}
	}
}
