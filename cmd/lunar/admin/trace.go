package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"lunar/cmd/lunar/capture"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

type traceCommand struct {
	asking  `embed:""`
	Session uint16 `arg:"" help:"The session's number (lunar sessions)."`
	Seconds int    `default:"10" placeholder:"N" help:"End after so many seconds, at most 3600."`
	Records int    `default:"10000" placeholder:"N" help:"End after so many PDUs, at most 1000000."`
	Output  string `short:"o" enum:"text,json" default:"text" placeholder:"FORM" help:"Form of the output: text, a line for each PDU, or json, the lines of the control API."`
	Pcapng  string `type:"path" placeholder:"FILE" help:"Write a file for Wireshark instead, which must not be there; -: to standard output. Only its owner may read it."`
}

// Run traces a session. An interrupt ends the trace.
func (k traceCommand) Run(ctx context.Context, c cli.Console) error {
	if k.Seconds < 1 || k.Seconds > control.MaxTraceSeconds || k.Records < 1 || k.Records > control.MaxTracePDUs {
		return usage(fmt.Errorf("found --seconds %d and --records %d, expected 1 to %d and 1 to %d", k.Seconds, k.Records, control.MaxTraceSeconds, control.MaxTracePDUs))
	}
	if k.Pcapng != "" && k.Output != "text" {
		return usage(fmt.Errorf("found --pcapng and -o %s, expected one of them", k.Output))
	}
	return k.ask(func(api *control.Client) (err error) {
		tell, end, err := k.teller(c)
		if err != nil {
			return err
		}
		begun, pdus := false, 0
		defer func() { err = cmp.Or(err, end(begun)) }()
		interrupted, err := following(ctx, c, func(ctx context.Context) error {
			return api.Trace(ctx, int(k.Session), k.Seconds, k.Records, func(line *control.TraceLine) error {
				begun = true
				if line.PDU != nil {
					pdus++
				}
				summarize(c.Err, line)
				return tell(line)
			})
		})
		if err != nil && interrupted {
			fmt.Fprintf(c.Err, "lunar: interrupted, %d PDUs\n", pdus)
			return nil
		}
		return err
	})
}

// summarize says what is traced, and how that has ended.
func summarize(to io.Writer, line *control.TraceLine) {
	if s := line.Start; s != nil {
		fmt.Fprintf(to, "lunar: tracing session %d: initiator %s, target %s, %s\n", s.Session, iscsiname.Printable(s.Initiator), cmp.Or(iscsiname.Printable(s.Target), "(discovery)"), s.Transport)
		if s.Transport == "iser" {
			fmt.Fprintln(to, "lunar: data that are moved by RDMA are no PDUs, and are not shown")
		}
	}
	if e := line.End; e != nil {
		fmt.Fprintf(to, "lunar: end: %s; PDUs: %d, missing: %d\n", e.Reason, e.PDUs, e.Missing)
	}
}

// teller is what prints or writes lines, and what ends that: of a trace that has not begun
// there is no file.
func (k traceCommand) teller(c cli.Console) (tell func(*control.TraceLine) error, end func(begun bool) error, err error) {
	end = func(bool) error { return nil }
	switch {
	case k.Pcapng != "":
		to := c.Out
		if k.Pcapng != "-" {
			file, err := os.OpenFile(k.Pcapng, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return nil, nil, err
			}
			to, end = file, func(begun bool) error {
				if !begun {
					return errors.Join(file.Close(), os.Remove(k.Pcapng))
				}
				return file.Close()
			}
		}
		w, err := capture.New(to)
		if err != nil {
			return nil, nil, err
		}
		return func(line *control.TraceLine) error { return captured(w, line) }, end, nil
	case k.Output == asJSON:
		lines := json.NewEncoder(c.Out)
		return func(line *control.TraceLine) error { return lines.Encode(line) }, end, nil
	}
	return func(line *control.TraceLine) error {
		_, err := io.WriteString(c.Out, lineOf(line))
		return err
	}, end, nil
}

func captured(w *capture.Writer, line *control.TraceLine) error {
	switch {
	case line.Connection != nil:
		w.Connection(line.Connection)
	case line.PDU != nil:
		return w.PDU(line.PDU)
	case line.End != nil:
		return w.End(line.End)
	}
	return nil
}
