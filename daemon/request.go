package daemon

import (
	"lunar/conf"
	"lunar/conf/edit"
	"lunar/control"
	"lunar/control/server"
)

// request is how a configuration is to be put into force.
type request struct {
	by       server.Asker
	name     string // of its file
	text     []byte // of the configuration
	warnings []conf.Warning
	dry      bool // only tell
	allowed  conf.Allowed
	edit     *editing // it comes of changes of what is running; nil: it is a file
	joint    *joint   // it comes of another revision of the cluster's configuration; nil: it does not
}

// editing is what changes of objects make of the texts.
type editing struct {
	by         server.Asker
	objects    []control.Edit // that are changed; nil: the whole text
	what       string         // was asked for
	dir        string         // the state directory
	path       string         // of the file
	allowed    conf.Allowed   // what it may do
	generation int            // that the file is; 0: it was not kept
	running    *edit.Document // that is to be in force
	was        *document      // of the file, before; as file
	file       *edit.Document // that is to be in the file; nil: it is not written
	fileConfig *conf.Config
}

const editRefused = "nothing was changed"

func conflict(reason string) error {
	return &control.Refusal{What: editRefused, State: true, Reasons: []control.Reason{{Text: reason}}}
}
