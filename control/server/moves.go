package server

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

// SendRequest is the request for one volume. It is exported for the reflection of huma, as
// ReceiveRequest is.
type SendRequest struct {
	VolumePath
	Body control.Send
}

// ReceiveRequest is the request for a volume that there is not yet.
type ReceiveRequest struct {
	VolumePath
	Body control.Receive
}

func addMoves(api huma.API, s Source) {
	changeBy(api, describe("post-send", http.MethodPost, control.SendPath, "Send a volume to another server, which has begun to receive it"),
		func(by Asker, in *SendRequest) (control.SentVolume, error) { return s.SendVolume(by, in.Name, in.Body) })
	changeBy(api, describe("post-receive", http.MethodPost, control.ReceivePath, "Receive a volume from another server, and serve it once it is whole"),
		func(by Asker, in *ReceiveRequest) (control.ReceivedVolume, error) {
			return s.ReceiveVolume(by, in.Name, in.Body)
		})
	changeBy(api, describe("post-checksum", http.MethodPost, control.ChecksumPath, "Read a volume for its checksum, which is of one moment though it is in use"),
		func(by Asker, in *VolumePath) (control.VolumeChecksum, error) { return s.Checksum(by, in.Name) })
}
