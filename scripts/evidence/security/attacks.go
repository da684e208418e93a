package main

import (
	"context"

	"lunar/internal/initiator"
)

// attack is something that somebody does who must not get anything from it.
type attack struct {
	name string
	item string // of the audit: who is attacked, or by what
	how  string // for the table
	// run attacks until ctx ends and returns what it counted.
	run func(ctx context.Context, s *scene) (figures, error)
	// bounds are what else must hold than what holds for every canary.
	bounds []bound
	// change makes another configuration for it; figures of one that check refuses are 0.
	change func(config string) string
	local  bool // it needs no canary, and no time
	fuzzes bool
	floods bool // it is as fast as it can be: there is no canary beside it
}

// bound says how far a figure may go.
type bound struct {
	figure string
	least  float64
	most   float64
	per    string // the bound is for the ratio to this figure and itself, if not empty
	timed  bool   // it depends on how fast the machine is
}

// atMost and atLeast are bounds of a figure, share is one of figure/(figure+rest), and
// timed says of one that it depends on how fast the machine is.
func atMost(figure string, n float64) bound  { return bound{figure: figure, most: n} }
func atLeast(figure string, n float64) bound { return bound{figure: figure, least: n, most: 1e18} }
func share(figure, rest string, least float64) bound {
	return bound{figure: figure, least: least, most: 1, per: rest}
}
func timed(b bound) bound { b.timed = true; return b }

// holds reports whether the figures keep to the bound.
func (b bound) holds(f figures) bool {
	found := f[b.figure]
	if b.per != "" {
		if found+f[b.per] == 0 {
			return false
		}
		found /= found + f[b.per]
	}
	return b.least <= found && found <= b.most
}

// Names of figures that bounds are about, and which other files fill.
const (
	stolen       = "blocks read of somebody else's"
	overwritten  = "blocks overwritten of somebody else's"
	impersonated = "logins under another's name"
	tellApart    = "answers that tell targets apart"
	listed       = "addresses and targets of others listed"
	without      = "logins without the secret"
	changed      = "changes by a read-only initiator"
	afterRevoked = "a removed user's session goes on for, s"
	guesses      = "guesses answered/s"
	amplified    = "bytes out per byte in"
	logged       = "log bytes/s"
	grown        = "memory grown, MiB"
	endedOf      = "canary's commands ended"
	commandTime  = "lunar status, ms"
	scrapeTime   = "metrics, ms"
	othersServed = "requests of others served"
	othersNot    = "requests of others refused"
)

// attacks are all of them.
var attacks = []attack{
	{name: "copy", item: "1", how: "A tenant with her own user and target claims the canary's initiator name and sends EXTENDED COPY between the canary's volume and her own, both ways",
		run: copyAcross, bounds: []bound{atMost(stolen, 0), atMost(overwritten, 0)}},
	{name: "token", item: "1", how: "The same with WRITE USING TOKEN to the canary's volume and POPULATE TOKEN of it, by what her own LUN reaches",
		run: tokenAcross, bounds: []bound{atMost(stolen, 0), atMost(overwritten, 0)}},
	{name: "name", item: "2", how: "A tenant of the same auth group logs in with her own user, the canary's initiator name and ISID (session reinstatement), five times a second",
		run: takeName, bounds: []bound{atMost(impersonated, 0)}},
	{name: "revoked", item: "3", how: "`lunar apply` removes a user, whose initiator does not listen when it is asked to leave", run: revoked, bounds: []bound{atMost(afterRevoked, mostRevoked.Seconds())}},
	{name: "guess", item: "4", how: "16 connections guess the canary's secret", run: guess, bounds: []bound{atMost(guesses, 100)}},
	{name: "reflection", item: "4", how: "A mutual secret is a secret of another group: a user of the one has the server answer its own challenge", run: reflect, change: withMirror,
		bounds: []bound{atMost(without, 0)}},
	{name: "hidden", item: "4", how: "Logins to a target of another portal group, to one that another initiator may use, and to none; discovery, all by a stranger", run: probe,
		bounds: []bound{atMost(tellApart, 0), atMost(listed, 0)}},

	{name: "discovery", item: "5", how: "64 strangers ask SendTargets=All again and again, of 200 targets", run: discoveryLoops},
	{name: "discovery-places", item: "7", how: "A stranger opens as many discovery sessions as he can; somebody else asks ten times a second", run: discoveryPlaces,
		bounds: []bound{timed(share(honestIn, honestOut, 0.95))}},

	{name: "withheld", item: "6", how: "4 sessions of a stranger fill their windows with writes of 256 KiB and send no data", run: withheld(openTarget, stranger)},
	{name: "withheld-read-only", item: "6", how: "The same by a tenant who may only read the canary's volume", run: withheld(readerTarget, mallory)},
	{name: "empty", item: "6", how: "The same, and every R2T is answered by empty Data-Out PDUs ten times a second", run: emptyData},
	{name: "half", item: "6", how: "256 sessions of a stranger send half of a write with 256 KiB of immediate data, and then a byte every 3 s", run: halfCommands(openTarget, stranger)},
	{name: "half-read-only", item: "6", how: "The same by a tenant who may only read the canary's volume", run: halfCommands(readerTarget, mallory)},

	{name: "half-open", item: "7", how: "A stranger opens 600 connections a second and sends half of a login on each; somebody else logs in ten times a second", run: halfOpen,
		bounds: []bound{timed(share(honestIn, honestOut, 0.95))}},
	{name: "sessions", item: "7", how: "A stranger opens up to 1,024 sessions; somebody else logs in ten times a second", run: manySessions,
		bounds: []bound{timed(share(honestIn, honestOut, 0.95))}},
	{name: "registrations", item: "7", how: "One PERSISTENT RESERVE OUT registers 1,023 made-up initiators (SPEC_I_PT); then another tenant registers", run: registrations,
		bounds: []bound{atLeast(othersServed, 1), atMost(othersNot, 0)}},
	{name: "tokens", item: "7", how: "A tenant makes ROD tokens without end; another one makes his", run: tokens,
		bounds: []bound{share(othersServed, othersNot, 0.95)}},
	// The other one asks again whether her last copy has ended or not.
	{name: "copies", item: "7", how: "A tenant keeps as many background copies (EXTENDED COPY with IMMED) going as she can; another one copies", run: copies,
		bounds: []bound{timed(share(othersServed, othersNot, 0.95)), share(othersServed, othersNot, 0.5)}},
	{name: "log", item: "7", how: "8 strangers log in and hang up without end", run: reconnects},

	{name: "lu-reset", item: "8", how: "LOGICAL UNIT RESET by a tenant who may only read the canary's volume, ten times a second", run: manages(initiator.LogicalUnitReset), bounds: []bound{atMost(endedOf, 0)}},
	{name: "clear-task-set", item: "8", how: "CLEAR TASK SET by the same", run: manages(initiator.ClearTaskSet), bounds: []bound{atMost(endedOf, 0)}},
	{name: "warm-reset", item: "8", how: "TARGET WARM RESET by the same", run: manages(initiator.TargetWarmReset), bounds: []bound{atMost(endedOf, 0)}},
	{name: "cold-reset", item: "8", how: "TARGET COLD RESET by the same", run: manages(initiator.TargetColdReset), bounds: []bound{atMost(endedOf, 0)}},
	{name: "changes", item: "8", how: "The same sends PERSISTENT RESERVE OUT, RESERVE, MODE SELECT, SET TIMESTAMP, SET TARGET PORT GROUPS, PREVENT ALLOW MEDIUM REMOVAL, SANITIZE", run: changesByReader,
		bounds: []bound{atMost(changed, 0), atMost(endedOf, 0)}},

	{name: "acknowledge", item: "9", how: "At ErrorRecoveryLevel 2 a stranger lets responses pile up without acknowledging them, and then acknowledges all at once", run: acknowledge},
	// What a SNACK asks for is as much as there was: it is the work that is bounded, not the ratio.
	{name: "snack", item: "9", how: "At ErrorRecoveryLevel 1 a stranger has the data of one read sent again and again", run: snacks},
	{name: "lost", item: "9", how: "At ErrorRecoveryLevel 2 a stranger loses one connection after the other with reads of 256 KiB that nobody acknowledges", run: lostConnections,
		bounds: []bound{atMost(grown, 320)}}, // all lost connections together keep 256 MiB

	{name: "acknowledge-real-time", item: "9", how: "*acknowledge* again, where the event threads are real-time ones (`server.real-time: true`)", run: acknowledge, change: withRealTime},
	{name: "lost-real-time", item: "9", how: "*lost* again, where the event threads are real-time ones", run: lostConnections, change: withRealTime,
		bounds: []bound{atMost(grown, 320)}},

	{name: "brackets", item: "12", how: "`tgtd check` of 20,000 opening brackets", run: brackets, local: true, bounds: []bound{atMost("check's memory, MiB", 128)}},
	{name: "slow-clients", item: "12", how: "40 clients of the control socket and 40 of the metrics send half of a request; an administrator asks", run: slowClients,
		bounds: []bound{timed(atMost(commandTime, 2000)), timed(atMost(scrapeTime, 2000))}},
}
