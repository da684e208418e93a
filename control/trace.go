package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// TracePath is where the PDUs of a session are told as they come and go.
const TracePath = "/v1/sessions/{id}/trace"

// The bounds of a trace.
const (
	DefaultTraceSeconds = 10
	MaxTraceSeconds     = 3600
	DefaultTracePDUs    = 10_000
	MaxTracePDUs        = 1_000_000
)

// TraceLine is a line of a trace. It has one of the fields.
type TraceLine struct {
	Start      *TraceStart      `json:"start,omitempty" doc:"The first line: what is traced."`
	Connection *TraceConnection `json:"connection,omitempty" doc:"A connection, before its first PDU."`
	PDU        *TracedPDU       `json:"pdu,omitempty" doc:"A PDU."`
	Relayed    *TraceRelayed    `json:"relayed,omitempty" doc:"A command of a volume that another node of the cluster owns was relayed to it, before its answer."`
	End        *TraceEnd        `json:"end,omitempty" doc:"The last line: why there are no more. Without it the trace was broken off."`
}

// TraceStart is of the session that is traced.
type TraceStart struct {
	Session   int       `json:"session" doc:"TSIH."`
	Initiator string    `json:"initiator" doc:"iSCSI name of the initiator."`
	Target    string    `json:"target,omitempty" doc:"iSCSI name of the target; absent: a discovery session."`
	Transport string    `json:"transport" doc:"tcp or iser. Data that iSER moves by RDMA are no PDUs, and are not told."`
	Time      time.Time `json:"time" doc:"When it began."`
}

// TraceConnection is a connection of the session. Another one may take its number.
type TraceConnection struct {
	CID     int    `json:"cid" doc:"Number that the initiator gave it. PDUs with it are of the connection of that number that was told last."`
	Portal  string `json:"portal,omitempty" doc:"Address of the server."`
	Address string `json:"address,omitempty" doc:"Address of the initiator."`
}

// TraceEnd is how a trace has ended.
type TraceEnd struct {
	Reason  string `json:"reason" doc:"Why."`
	PDUs    int    `json:"pdus" doc:"How many were told."`
	Missing int    `json:"missing" doc:"How many were not, because they came faster than they could be told."`
}

// TraceRelayed is how a command was relayed to another node, and where its time went.
type TraceRelayed struct {
	Time          time.Time `json:"time" doc:"When its outcome was here."`
	CID           int       `json:"cid" doc:"Connection."`
	ITT           uint32    `json:"itt" doc:"Initiator Task Tag."`
	LUN           uint64    `json:"lun" doc:"Number of the LUN."`
	Node          string    `json:"node" doc:"The other node."`
	Waited        float64   `json:"waited_microseconds" doc:"From when it came until it was sent: for its data, or for the node."`
	Away          float64   `json:"away_microseconds" doc:"From then until its outcome was here."`
	There         float64   `json:"there_microseconds" doc:"Of that, how long the node had it; the rest is the way. 0: not known."`
	Ended         bool      `json:"ended" doc:"The node has ended it. Otherwise it did not, or nobody knows, and its initiator is told to send it again."`
	MissingBefore int       `json:"missing_before,omitempty" doc:"PDUs before it that are missing, because they came faster than they could be told."`
}

// Ways of a TracedPDU.
const (
	TraceReceived = "received"
	TraceSent     = "sent"
)

// TracedPDU is the header of a PDU, whole and taken apart. Fields that the PDU does not
// have are absent.
type TracedPDU struct {
	Time          time.Time `json:"time" doc:"When the server had received it, or gave it to the transport."`
	Direction     string    `json:"direction" enum:"received,sent" doc:"As the server sees it."`
	CID           int       `json:"cid" doc:"Connection."`
	PDU           string    `json:"pdu" doc:"What it is, as RFC 7143 calls it."`
	BHS           string    `json:"bhs" doc:"Its basic header segment of 48 bytes, hexadecimal."`
	AHSLength     int       `json:"ahs_length" doc:"Bytes of additional header segments, which are not told."`
	DataLength    int       `json:"data_length" doc:"Bytes of data, which are not told."`
	MissingBefore int       `json:"missing_before,omitempty" doc:"PDUs before it that are missing, because they came faster than they could be told."`
	Again         bool      `json:"again,omitempty" doc:"It was sent before (recovery)."`
	Damaged       bool      `json:"damaged,omitempty" doc:"Its data digest was wrong."`
	Immediate     bool      `json:"immediate,omitempty" doc:"It is outside the order of commands."`
	Final         bool      `json:"final,omitempty" doc:"It is the last one of its sequence."`

	ITT       *uint32 `json:"itt,omitempty" doc:"Initiator Task Tag."`
	TTT       *uint32 `json:"ttt,omitempty" doc:"Target Transfer Tag."`
	LUN       *uint64 `json:"lun,omitempty" doc:"Number of the LUN; of an answer that of the request."`
	CmdSN     *uint32 `json:"cmd_sn,omitempty" doc:"Number of the command."`
	ExpStatSN *uint32 `json:"exp_stat_sn,omitempty" doc:"Number of the status that the initiator expects next."`
	StatSN    *uint32 `json:"stat_sn,omitempty" doc:"Number of the status."`
	ExpCmdSN  *uint32 `json:"exp_cmd_sn,omitempty" doc:"Number of the command that the target expects next."`
	MaxCmdSN  *uint32 `json:"max_cmd_sn,omitempty" doc:"Number of the last command that the target takes."`
	DataSN    *uint32 `json:"data_sn,omitempty" doc:"Number of the data PDU."`
	R2TSN     *uint32 `json:"r2t_sn,omitempty" doc:"Number of the R2T."`
	ExpDataSN *uint32 `json:"exp_data_sn,omitempty" doc:"How many Data-In and R2T there were."`

	Command   string  `json:"command,omitempty" doc:"SCSI command; of an answer that of the request."`
	CDB       string  `json:"cdb,omitempty" doc:"The first 16 bytes of the CDB, hexadecimal."`
	Attribute string  `json:"attribute,omitempty" doc:"Task attribute."`
	Transfer  string  `json:"transfer,omitempty" doc:"Data that the command has: read, write, or both."`
	Expected  *uint32 `json:"expected_bytes,omitempty" doc:"Expected Data Transfer Length."`
	Offset    *uint32 `json:"offset,omitempty" doc:"Buffer offset in bytes."`
	Desired   *uint32 `json:"desired_bytes,omitempty" doc:"Bytes that an R2T asks for."`

	Status   string  `json:"status,omitempty" doc:"Status of the command."`
	Residual *uint32 `json:"residual_bytes,omitempty" doc:"Bytes by which the data differ from what was expected."`
	Over     bool    `json:"residual_over,omitempty" doc:"There were more, else fewer."`

	Function      string  `json:"function,omitempty" doc:"Task management function; of an answer that of the request."`
	ReferencedTag *uint32 `json:"referenced_tag,omitempty" doc:"Initiator Task Tag that it is about."`
	Response      string  `json:"response,omitempty" doc:"Outcome of something other than a command, or of one that was not executed."`
	Reason        string  `json:"reason,omitempty" doc:"Why: of a logout, a SNACK, a reject or an asynchronous message."`

	SinceRequest *float64 `json:"since_request_microseconds,omitempty" doc:"Time since the request with the same Initiator Task Tag."`
}

// Trace traces a session for at most seconds and PDUs, 0: as long as the server does by
// default. It ends with ctx, or when told returns an error.
func (c *Client) Trace(ctx context.Context, session, seconds, pdus int, told func(*TraceLine) error) error {
	query := url.Values{}
	for name, n := range map[string]int{"seconds": seconds, "pdus": pdus} {
		if n != 0 {
			query.Set(name, fmt.Sprint(n))
		}
	}
	at := pathOf(TracePath, "{id}", fmt.Sprint(session)) + "?" + query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+at, nil)
	if err != nil {
		return err
	}
	return c.streamed(r, func(from io.Reader) error { return readTrace(from, told) })
}

// readTrace reads lines; empty ones only show that the server is there.
func readTrace(from io.Reader, told func(*TraceLine) error) error {
	for lines := json.NewDecoder(from); ; {
		line := &TraceLine{}
		switch err := lines.Decode(line); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return errors.New("trace: found no last line: the server has ended, or broke it off because it was not taken in time")
		case err != nil:
			return fmt.Errorf("trace: %w", err)
		}
		if err := told(line); err != nil || line.End != nil {
			return err
		}
	}
}
