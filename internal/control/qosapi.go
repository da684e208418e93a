package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// The paths of the token scheduler.
const (
	qosPath     = "/v1/qos"
	rulePath    = "/v1/qos/rules/{name}"
	explainPath = "/v1/qos/explain"
	applyPath   = "/v1/apply"
)

func addQoS(api huma.API, s Source) {
	get(api, qosPath, "Rules, groups and capacity of the token scheduler", func() (QoS, error) { return s.Rules(), nil })
	change(api, "put-qos", http.MethodPut, qosPath, "Put rules and groups into force in place of all that are",
		func(in *struct{ Body RuleSet }) (QoS, error) {
			return s.ChangeRules(func(set *RuleSet) error { *set = in.Body; return nil })
		})
	change(api, "put-qos-rule", http.MethodPut, rulePath, "Put a rule into force in place of the one of that name, or as a new one", putRule(s))
	change(api, "patch-qos-rule", http.MethodPatch, rulePath, "Change a rule; without one of that name, make it", patchRule(s))
	change(api, "delete-qos-rule", http.MethodDelete, rulePath, "Take a rule out of force", deleteRule(s))
	change(api, "get-qos-explain", http.MethodGet, explainPath, "What the token scheduler does for an initiator, and why",
		func(in *struct {
			Initiator string `query:"initiator" doc:"iSCSI name; without it: all that have sessions."`
		}) (Explanation, error) {
			return s.Explain(in.Initiator), nil
		})
}

// applyBody bounds a request with a file: in JSON a byte takes six at most.
func applyBody(maxFile int64) int64 { return maxBody + 6*maxFile }

// addApply adds what takes a configuration file.
func addApply(api huma.API, s Source, maxFile int64) {
	op := huma.Operation{OperationID: "post-apply", Method: http.MethodPost, Path: applyPath,
		Summary: "Put a configuration file into force without a restart, or refuse all of it", MaxBodyBytes: applyBody(maxFile)}
	changeAs(api, op, func(in *struct{ Body File }) (Applied, error) { return s.Apply(in.Body) })
}

// change adds an operation that can be refused.
func change[I, O any](api huma.API, id, method, path, summary string, do func(*I) (O, error)) {
	changeAs(api, huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, MaxBodyBytes: maxBody}, do)
}

// changeAs adds the operation that op describes, which can be refused.
func changeAs[I, O any](api huma.API, op huma.Operation, do func(*I) (O, error)) {
	huma.Register(api, op,
		func(ctx context.Context, in *I) (*answer[O], error) {
			noteInput(ctx, in)
			body, err := do(in)
			if err != nil {
				return nil, refusal(err)
			}
			noteResult(ctx, body)
			return &answer[O]{body}, nil
		})
}

// refusal makes a problem document of an error.
func refusal(err error) error {
	var r *Refusal
	if !errors.As(err, &r) {
		return err
	}
	status := http.StatusUnprocessableEntity
	if r.State {
		status = http.StatusConflict
	}
	var details []error
	for _, reason := range r.Reasons {
		details = append(details, &huma.ErrorDetail{Location: reason.Place, Message: reason.Text})
	}
	return huma.NewError(status, r.What, details...)
}

// RulePath is the path of one rule. It is exported for the reflection of huma.
type RulePath struct {
	Name string `path:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"Name of the rule."`
}

type putRuleRequest struct {
	RulePath
	Body Rule
}

func putRule(s Source) func(*putRuleRequest) (QoS, error) {
	return func(in *putRuleRequest) (QoS, error) {
		if in.Body.Name != in.Name {
			return QoS{}, &Refusal{What: "the rule was refused", Reasons: []Reason{{"name", fmt.Sprintf("found %q, expected %q as in the path", in.Body.Name, in.Name)}}}
		}
		return s.ChangeRules(func(set *RuleSet) error { *set.rule(in.Name) = in.Body; return nil })
	}
}

type patchRuleRequest struct {
	RulePath
	Body RuleChange
}

func patchRule(s Source) func(*patchRuleRequest) (QoS, error) {
	return func(in *patchRuleRequest) (QoS, error) {
		return s.ChangeRules(func(set *RuleSet) error { in.Body.Apply(set.rule(in.Name)); return nil })
	}
}

func deleteRule(s Source) func(*RulePath) (QoS, error) {
	return func(in *RulePath) (QoS, error) {
		return s.ChangeRules(func(set *RuleSet) error {
			i := set.index(in.Name)
			if i < 0 {
				return huma.Error404NotFound(fmt.Sprintf("found no rule %q in force", in.Name))
			}
			set.Rules = slices.Delete(set.Rules, i, i+1)
			return nil
		})
	}
}

// index is where a rule is; -1: nowhere.
func (s *RuleSet) index(name string) int {
	return slices.IndexFunc(s.Rules, func(r Rule) bool { return r.Name == name })
}

// rule finds a rule or makes it.
func (s *RuleSet) rule(name string) *Rule {
	i := s.index(name)
	if i < 0 {
		i, s.Rules = len(s.Rules), append(s.Rules, Rule{Name: name})
	}
	return &s.Rules[i]
}
