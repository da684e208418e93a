package daemon

import (
	"sync"

	"lunar/conf"
	"lunar/conf/edit"
)

func newDocument(text []byte) *document {
	return &document{text, sync.OnceValues(func() (*edit.Document, error) { return edit.Parse(text) })}
}

// parsedDocument is one that is parsed.
func parsedDocument(d *edit.Document) *document {
	return &document{d.Text(), func() (*edit.Document, error) { return d, nil }}
}

// read notes the text that the server was started with.
func (a *applier) read(text []byte) {
	t := &texts{running: newDocument(text)}
	if a.serve.Config != "" {
		t.file = t.running
	}
	a.texts.Store(t)
}

// noteTexts notes what is in force, and what is in the file.
func (a *applier) noteTexts(r *request, cfg *conf.Config) (warnings []string) {
	was := a.texts.Load()
	now := &texts{file: was.file}
	switch {
	case r.joint != nil:
		a.jointInForce(r.joint)
		return nil
	case r.edit == nil:
		now.running = newDocument(r.text)
		if r.name == a.serve.Config {
			now.file = now.running
			a.inFile(cfg)
			warnings = a.keepRead(r.by.By, "apply", r.text)
		}
	default:
		now.running = parsedDocument(r.edit.running)
		if r.edit.file != nil {
			now.file = parsedDocument(r.edit.file)
			a.inFile(r.edit.fileConfig)
			if string(now.file.text) != string(was.file.text) {
				r.edit.generation, warnings = a.keepGeneration(r.edit.by.By, r.edit.what, now.file.text)
			}
		}
		if now.file != nil && string(now.file.text) == string(now.running.text) {
			now.file = now.running
		}
	}
	a.texts.Store(now)
	return warnings
}

// inFile notes what the file that the server was started with has.
func (a *applier) inFile(cfg *conf.Config) {
	a.daemon.qos.reconfigured(configuredSet(&cfg.QoS))
	a.daemon.file.Store(cfg)
}

// tree is what the configuration says that is running, with that of the cluster.
func (a *applier) tree() (edit.Object, error) {
	d, err := a.texts.Load().running.parse()
	if err != nil {
		return nil, conflict("the text of the configuration: " + err.Error())
	}
	return a.daemon.joint().with(d.Tree())
}
