package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"syscall"
	"time"

	"lunar/scripts/evidence/notes"
	"lunar/scripts/evidence/site"
)

const (
	settling = 400 * time.Millisecond // two intervals, in which what has moved gets its promise
	away     = 5 * time.Second        // of a node that is killed or stopped
	back     = 5 * time.Second        // after it
	unmet    = 4 * time.Second        // after which a reservation has to be met again
	several  = 5 * second             // in which what is under way matters little
	stays    = 20 * second            // for which demand stays where nothing happens
)

// percent is a part in percent, as text.
func percent(n, of int64) string { return fmt.Sprintf("%.1f %%", float64(n)*100/float64(of)) }

// moving has the demand move over the nodes, and looks at each second from two intervals after
// that on.
func (s *scene) moving() (r notes.Result, err error) {
	var first, settled []span
	began := time.Now()
	for i := range s.Moves {
		s.promised.ask((i + 1) % len(s.site.Nodes))
		moved := time.Now()
		time.Sleep(s.Every)
		at := moved.Add(settling)
		first, settled = append(first, span{moved, at}), append(settled, span{at, moved.Add(s.Every)})
	}
	least, at := s.promised.least(settled)
	atOnce := int64(0)
	for _, f := range first {
		atOnce += s.promised.served(f.from, settling)
	}
	r.Columns, r.Rows = []string{"after a move", "commands per second of the initiator with the reservation, mean", "least"}, s.course(first)
	r.Facts = []notes.Fact{
		notes.Found(fmt.Sprintf("least that the initiator with %d reserved got in any second that begins %v after one of %d moves or later", reserved, settling, s.Moves), percent(least, reserved)+" of that", least*100 >= reserved*98),
		s.everybody(at),
		notes.Found(fmt.Sprintf("what it got in the first %v, in the mean", settling), percent(atOnce*int64(second), reserved*int64(s.Moves)*int64(settling))+" of that", true),
	}
	r.Facts = append(r.Facts, s.limits([]span{{began, time.Now()}}, 101)...)
	r.Facts = append(r.Facts, s.all(began), s.failed())
	return r, nil
}

// staying has the demand stay at a node, for as long as it moves otherwise.
func (s *scene) staying() (r notes.Result, err error) {
	s.promised.ask(0)
	began := time.Now().Add(second)
	time.Sleep(second + stays)
	in := []span{{began, time.Now()}}
	least, at := s.promised.least(in)
	r.Facts = []notes.Fact{
		notes.Found(fmt.Sprintf("least that the initiator with %d reserved got in any second", reserved), percent(least, reserved)+" of that", true),
		s.everybody(at),
	}
	r.Facts = append(r.Facts, s.limits(in, 101)...)
	r.Facts = append(r.Facts, s.failed())
	return r, nil
}

// everybody says what all got in a second, and how long nobody was answered.
func (s *scene) everybody(from time.Time) notes.Fact {
	gap, most := time.Duration(0), time.Duration(0)
	for at := from; at.Before(from.Add(second)); at = at.Add(slot) {
		n := int64(0)
		for _, u := range s.users() {
			n += u.served(at, slot)
		}
		if gap += slot; n > 0 {
			gap = 0
		}
		most = max(most, gap)
	}
	return notes.Found("commands of all initiators in that second, and the longest time in it in which nobody was answered", fmt.Sprintf("%d, %d ms", s.total(from), most.Milliseconds()), true)
}

// total is what all got in a second.
func (s *scene) total(from time.Time) (n int64) {
	for _, u := range s.users() {
		n += u.served(from, second)
	}
	return n
}

// course is what the initiator with the reservation got in each fifth of a second after moves.
func (s *scene) course(moves []span) (rows [][]string) {
	const step = second / 5
	for after := time.Duration(0); after+step <= s.Every; after += step {
		sum, least := int64(0), int64(math.MaxInt64)
		for _, m := range moves {
			n := s.promised.served(m.from.Add(after), step) * int64(second/step)
			sum, least = sum+n, min(least, n)
		}
		rows = append(rows, []string{fmt.Sprintf("%.1f to %.1f s", after.Seconds(), (after + step).Seconds()), fmt.Sprint(sum / int64(len(moves))), fmt.Sprint(least)})
	}
	return rows
}

// limits are facts of what those with limits got, which must be so many percent at most.
func (s *scene) limits(in []span, most int64) (facts []notes.Fact) {
	for _, l := range []struct {
		*user
		limit int64
	}{{s.promised, limited}, {s.held, held}} {
		one, some := l.most(in, second), l.most(in, several)
		facts = append(facts, notes.Found(fmt.Sprintf("most that the initiator with a limit of %d got in any %v, and in any second", l.limit, several),
			fmt.Sprintf("%s, %s of that", percent(some, 5*l.limit), percent(one, l.limit)), some*100 <= most*5*l.limit))
	}
	return facts
}

// all says what everybody got.
func (s *scene) all(from time.Time) notes.Fact {
	d := time.Since(from)
	rate := func(u *user) int64 { return u.served(from, d) * int64(second) / int64(d) }
	greedy := int64(0)
	for _, u := range s.greedy {
		greedy += rate(u)
	}
	return notes.Found("commands per second of all that time: with the reservation, with the limit alone, of two that want all", fmt.Sprintf("%d, %d, %d", rate(s.promised), rate(s.held), greedy), true)
}

// kept is what lunar qos show --cluster says.
type kept struct {
	Controller string   `json:"controller"`
	Nodes      []string `json:"nodes"`
	Promises   []struct {
		Name string `json:"name"`
		Met  int64  `json:"periods_met"`
	} `json:"promises"`
}

// keeper is the node that keeps the promises for all nodes, once it has kept them for some
// seconds.
func (s *scene) keeper() (*site.Node, error) {
	var said string
	for range 300 {
		time.Sleep(100 * time.Millisecond)
		for _, n := range s.site.Nodes {
			var k kept
			var code int
			if code, said = n.Lunar("qos", "show", "--cluster", "--json", "--socket", n.Socket()); code != 0 || json.Unmarshal([]byte(said), &k) != nil {
				continue
			}
			met := false
			for _, p := range k.Promises {
				met = met || p.Name == prefix+"promised" && p.Met >= 3
			}
			at := slices.IndexFunc(s.site.Nodes, func(n *site.Node) bool { return n.Name == k.Controller })
			if met && at >= 0 && len(k.Nodes) == len(s.site.Nodes) {
				return s.site.Nodes[at], nil
			}
		}
	}
	return nil, fmt.Errorf("found no node that keeps the promises: %s", said)
}

// without takes the node away that keeps the promises, and looks at what the others do while
// nobody keeps them, and after another one does.
func (s *scene) without(takeAway func(*scene, *site.Node) (returns time.Time, err error)) (r notes.Result, err error) {
	r.Columns = []string{"node", "reservation met again after", "after its return", "least in a second, and what all got in that", "most in 5 s, of the limits"}
	var rounds []span
	worst := time.Duration(0)
	for range s.Rounds {
		keeper, err := s.keeper()
		if err == nil {
			err = s.elsewhere(keeper)
		}
		if err != nil {
			return r, err
		}
		round := span{from: time.Now()}
		returns, err := takeAway(s, keeper)
		if err != nil {
			return r, err
		}
		time.Sleep(back)
		round.to = time.Now()
		met := s.promised.met(span{round.from, returns}, reserved*98/100)
		again := max(0, s.promised.met(span{returns.Add(-second), round.to}, reserved*98/100)-second)
		least, at := s.promised.least([]span{round})
		rounds, worst = append(rounds, round), max(worst, met, again)
		r.Rows = append(r.Rows, []string{keeper.Name, fmt.Sprintf("%.2f s", met.Seconds()), fmt.Sprintf("%.2f s", again.Seconds()), fmt.Sprintf("%s, %d", percent(least, reserved), s.total(at)),
			percent(s.promised.most([]span{round}, several), 5*limited) + ", " + percent(s.held.most([]span{round}, several), 5*held)})
	}
	r.Facts = append([]notes.Fact{notes.Found("the reservation is met in every second, after that and after the node's return", fmt.Sprintf("%.2f s later at most", worst.Seconds()), worst <= unmet)}, s.limits(rounds, 105)...)
	r.Facts = append(r.Facts, s.failed())
	return r, nil
}

// elsewhere has neither the volume nor the demand be at a node.
func (s *scene) elsewhere(than *site.Node) error {
	one := s.site.Other(than)
	owner, err := s.site.Owner()
	if err == nil && owner == than {
		err = s.site.MoveTo(s.site.Other(one))
	}
	s.promised.ask(slices.Index(s.site.Nodes, one))
	time.Sleep(3 * time.Second)
	return err
}

func (s *scene) kill(n *site.Node) (returns time.Time, err error) {
	if err := n.Kill(syscall.SIGKILL); err != nil {
		return returns, err
	}
	time.Sleep(away)
	returns = time.Now()
	_, err = n.Start()
	return returns, err
}

func (s *scene) stop(n *site.Node) (returns time.Time, err error) {
	err = n.Process.Signal(syscall.SIGSTOP)
	time.Sleep(away)
	return time.Now(), errors.Join(err, n.Process.Signal(syscall.SIGCONT))
}
