package promise

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"lunar/cluster/link"
	"lunar/scheduler"
	"lunar/scheduler/nodes"
)

// flowsSize is how many bytes of flows come over a link.
const flowsSize = 8 << 20

// Elsewhere are the flows of sessions with other nodes that live. Who does not answer before ctx
// ends is silent.
func (k *Keeper) Elsewhere(ctx context.Context) (flows []scheduler.Flow, silent []string) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, node := range k.config.Living() {
		if node == k.config.Node {
			continue
		}
		all.Go(func() {
			some, err := k.flowsOf(ctx, node)
			mu.Lock()
			defer mu.Unlock()
			if flows = append(flows, some...); err != nil {
				silent = append(silent, node)
			}
		})
	}
	all.Wait()
	slices.Sort(silent)
	return flows, silent
}

func (k *Keeper) flowsOf(ctx context.Context, node string) (flows []scheduler.Flow, err error) {
	answer, err := k.config.Links.Call(ctx, node, link.Message{Kind: link.Report, Room: flowsSize, Body: [][]byte{nodes.List()}})
	if err == nil {
		err = json.Unmarshal(answer, &flows)
	}
	return flows, err
}

// flows answers that.
func (k *Keeper) flows(answer func(...[]byte)) {
	text, err := json.Marshal(k.config.Flows())
	if err != nil || len(text) > flowsSize {
		text = nil
	}
	answer(text)
}
