package server

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

func addQoS(api huma.API, s Source) {
	get(api, control.QosPath, "Rules, groups and capacity of the token scheduler", func() (control.QoS, error) { return s.Rules(), nil })
	change(api, "put-qos", http.MethodPut, control.QosPath, "Put rules and groups into force in place of all that are",
		func(in *struct{ Body control.RuleSet }) (control.QoS, error) {
			return s.ChangeRules(func(set *control.RuleSet) error { *set = in.Body; return nil })
		})
	change(api, "get-qos-rule", http.MethodGet, control.RulePath, "One rule that is in force", func(in *RulePath) (control.Rule, error) {
		set := s.Rules().RuleSet
		if i := set.Index(in.Name); i >= 0 {
			return set.Rules[i], nil
		}
		return control.Rule{}, huma.Error404NotFound(fmt.Sprintf("found no rule %q in force", in.Name))
	})
	change(api, "put-qos-rule", http.MethodPut, control.RulePath, "Put a rule into force in place of the one of that name, or as a new one", putRule(s))
	change(api, "patch-qos-rule", http.MethodPatch, control.RulePath, "Change a rule; without one of that name, make it", patchRule(s))
	change(api, "delete-qos-rule", http.MethodDelete, control.RulePath, "Take a rule out of force", deleteRule(s))
	change(api, "get-qos-cluster", http.MethodGet, control.ClusterPromisesPath, "What is promised over all nodes of the cluster, and how it is kept",
		func(*struct{}) (control.ClusterPromises, error) { return s.ClusterPromises() })
	change(api, "get-qos-explain", http.MethodGet, control.ExplanationPath, "What the token scheduler does for an initiator, and why",
		func(in *struct {
			Initiator string `query:"initiator" doc:"iSCSI name; without it: all that have sessions."`
		}) (control.Explanation, error) {
			return s.Explain(in.Initiator), nil
		})
}

// applyBody bounds a request with a file: in JSON a byte takes six at most.
func applyBody(maxFile int64) int64 { return maxBody + 6*maxFile }

// addApply adds what takes a configuration file.
func addApply(api huma.API, s Source, maxFile int64) {
	op := huma.Operation{OperationID: "post-apply", Method: http.MethodPost, Path: control.ApplyPath,
		Summary: "Put a configuration file into force without a restart, or refuse all of it", MaxBodyBytes: applyBody(maxFile)}
	changeBy(api, op, func(by Asker, in *struct{ Body control.File }) (control.Applied, error) { return s.Apply(by, in.Body) })
}

// RulePath is the path of one rule. It is exported for the reflection of huma.
type RulePath struct {
	Name string `path:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"Name of the rule."`
}

type putRuleRequest struct {
	RulePath
	Body control.Rule
}

func putRule(s Source) func(*putRuleRequest) (control.QoS, error) {
	return func(in *putRuleRequest) (control.QoS, error) {
		if in.Body.Name != in.Name {
			return control.QoS{}, &control.Refusal{What: "the rule was refused", Reasons: []control.Reason{{Place: "name", Text: fmt.Sprintf("found %q, expected %q as in the path", in.Body.Name, in.Name)}}}
		}
		return s.ChangeRules(func(set *control.RuleSet) error { *set.Rule(in.Name) = in.Body; return nil })
	}
}

type patchRuleRequest struct {
	RulePath
	Body control.RuleChange
}

func patchRule(s Source) func(*patchRuleRequest) (control.QoS, error) {
	return func(in *patchRuleRequest) (control.QoS, error) {
		return s.ChangeRules(func(set *control.RuleSet) error { in.Body.Apply(set.Rule(in.Name)); return nil })
	}
}

func deleteRule(s Source) func(*RulePath) (control.QoS, error) {
	return func(in *RulePath) (control.QoS, error) {
		return s.ChangeRules(func(set *control.RuleSet) error {
			i := set.Index(in.Name)
			if i < 0 {
				return huma.Error404NotFound(fmt.Sprintf("found no rule %q in force", in.Name))
			}
			set.Rules = slices.Delete(set.Rules, i, i+1)
			return nil
		})
	}
}
