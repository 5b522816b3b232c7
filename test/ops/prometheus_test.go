// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	_ "sigs.k8s.io/controller-runtime/pkg/controller" // registers its metrics
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/test/check"
)

var language = parser.NewParser(parser.Options{})

// alerts returns the rules of the file of alerts.
func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	var object struct {
		APIVersion, Kind string
		Spec             map[string]any
	}
	check.NoError(t, yaml.Unmarshal(rendered(t, "alerts.yaml"), &object))
	if object.APIVersion != "monitoring.coreos.com/v1" || object.Kind != "PrometheusRule" {
		t.Fatalf("it is a %s of %s", object.Kind, object.APIVersion)
	}
	file := check.Must(yaml.Marshal(object.Spec))(t)
	groups, errs := rulefmt.Parse(file, false, model.UTF8Validation, language, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var rules []rulefmt.Rule
	for _, group := range groups.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules
}

// dashboard is what is read of a dashboard.
type dashboard struct {
	Title, UID string
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		ID      int
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr, LegendFormat string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	check.NoError(t, json.Unmarshal(rendered(t, "dashboard.json"), &d))
	return d
}

// withVariables replaces the variables of Grafana.
func withVariables(expression string) string {
	return strings.NewReplacer("$controller", controller, "$job", ".+", "$__rate_interval", "5m").Replace(expression)
}

// registered has the labels of all metrics that an operator serves, by name; nil for those that are not Corbel's.
func registered(t *testing.T) map[string][]string {
	t.Helper()
	descriptions := make(chan *prometheus.Desc, 10000)
	controllermetrics.Registry.(prometheus.Collector).Describe(descriptions)
	close(descriptions)
	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	all := map[string][]string{}
	for description := range descriptions {
		all[name.FindStringSubmatch(description.String())[1]] = nil
	}
	for _, declared := range metrics.Declared() {
		if _, known := all[declared.Name]; !known {
			t.Errorf("the metric %s is declared and not registered", declared.Name)
		}
		all[declared.Name] = append([]string{}, declared.Labels...)
		if declared.Type == "histogram" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				all[declared.Name+suffix] = append([]string{"le"}, declared.Labels...)
			}
		}
	}
	return all
}

// valuesOf returns the documented values of a label of a metric; nil if all are possible.
func valuesOf(t *testing.T, metric, label string) []string {
	t.Helper()
	page := check.Must(os.ReadFile(filepath.Join(root, "docs/reference/metrics.md")))(t)
	if metric == "corbel_components" && label == "reason" {
		page := check.Must(os.ReadFile(filepath.Join(root, "docs/reference/reasons.md")))(t)
		var reasons []string
		for _, heading := range regexp.MustCompile(`(?m)^### (\w+)\n\n[^#]*?- Conditions: `).FindAllStringSubmatch(string(page), -1) {
			reasons = append(reasons, heading[1])
		}
		return reasons
	}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || strings.TrimSpace(cells[1]) != "`"+label+"`" {
			continue
		}
		if of := strings.TrimSpace(cells[2]); of != "all metrics that have it" && of != "`"+metric+"`" {
			continue
		}
		text := cells[4]
		if strings.TrimSpace(text) == "" {
			text = cells[3] // the sentence lists them
		}
		var values []string
		for _, value := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
			values = append(values, value[1])
		}
		return values
	}
	t.Errorf("docs/reference/metrics.md does not have the label %s of %s", label, metric)
	return nil
}

// checkQuery reports metrics, labels and values of labels that do not exist.
func checkQuery(t *testing.T, known map[string][]string, query string) {
	t.Helper()
	expression, err := language.ParseExpr(query)
	if err != nil {
		t.Errorf("%v: %s", err, query)
		return
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		labels, exists := known[selector.Name]
		if !exists {
			t.Errorf("there is no metric %s: %s", selector.Name, query)
		}
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name == model.MetricNameLabel || matcher.Name == "job" || labels == nil {
				continue
			}
			if !slices.Contains(labels, matcher.Name) {
				t.Errorf("the metric %s has no label %s: %s", selector.Name, matcher.Name, query)
			} else if matcher.Name != "controller" {
				values := valuesOf(t, selector.Name, matcher.Name)
				for value := range strings.SplitSeq(matcher.Value, "|") {
					if !slices.Contains(values, value) {
						t.Errorf("the label %s of %s is never %q: %s", matcher.Name, selector.Name, value, query)
					}
				}
			} else if matcher.Value != controller {
				t.Errorf("the query is about %s: %s", matcher.Value, query)
			}
		}
		return nil
	})
	if aggregate, ok := expression.(*parser.AggregateExpr); ok {
		for _, label := range aggregate.Grouping {
			found := label == "job"
			for _, labels := range known {
				found = found || slices.Contains(labels, label)
			}
			if !found {
				t.Errorf("no metric has the label %s: %s", label, query)
			}
		}
	}
}

// TestQueriesUseMetricsThatExist compares the alerts and the dashboard with the registry and the reference.
func TestQueriesUseMetricsThatExist(t *testing.T) {
	known := registered(t)
	for _, rule := range alerts(t) {
		checkQuery(t, known, rule.Expr)
	}
	shown := map[string]bool{}
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			checkQuery(t, known, withVariables(target.Expr))
			for _, name := range regexp.MustCompile(`corbel_[a-z_]+`).FindAllString(target.Expr, -1) {
				shown[strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum")] = true
			}
		}
	}
	for _, declared := range metrics.Declared() {
		if !shown[declared.Name] {
			t.Errorf("the dashboard does not show %s", declared.Name)
		}
	}
}

// TestTheDashboardHasValidPanels checks what Grafana would not complain about.
func TestTheDashboardHasValidPanels(t *testing.T) {
	d := readDashboard(t)
	if d.Title != shop.Kind || len(d.UID) > 40 {
		t.Errorf("title %q, uid %q", d.Title, d.UID)
	}
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, panel := range d.Panels {
		if ids[panel.ID] || panel.Title == "" || len(panel.Targets) == 0 {
			t.Errorf("panel %d (%q) has no id of its own, no title or no query", panel.ID, panel.Title)
		}
		ids[panel.ID] = true
		at := panel.GridPos
		if at.X+at.W > 24 {
			t.Errorf("panel %q is outside of the grid", panel.Title)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" && other != panel.Title {
					t.Fatalf("the panels %q and %q overlap", panel.Title, other)
				}
				taken[[2]int{x, y}] = panel.Title
			}
		}
	}
}

// sample is a value of a series.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// seriesSet iterates over series.
type seriesSet struct {
	storage.SeriesSet
	left    []storage.Series
	current storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.current, s.left = s.left[0], s.left[1:]
	return true
}
func (s *seriesSet) At() storage.Series { return s.current }

// database holds series in the notation of promtool, with a sample each minute.
func database(t *testing.T, descriptions []string) storage.Queryable {
	t.Helper()
	var all []storage.Series
	for _, description := range descriptions {
		metric, values, err := language.ParseSeriesDesc(description)
		if err != nil {
			t.Fatalf("%s: %v", description, err)
		}
		var samples []chunks.Sample
		for minute, value := range values {
			if !value.Omitted {
				samples = append(samples, sample{int64(minute) * 60_000, value.Value})
			}
		}
		all = append(all, storage.NewListSeries(metric, samples))
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		var selected []storage.Series
		for _, series := range all {
			if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(series.Labels().Get(m.Name)) }) {
				selected = append(selected, series)
			}
		}
		return &seriesSet{SeriesSet: storage.EmptySeriesSet(), left: selected}
	}}}
}

// firing returns what a rule says at a time, if it is evaluated each minute: the texts of its annotations.
func firing(t *testing.T, engine *promql.Engine, data storage.Queryable, rule rulefmt.Rule, at time.Duration) []string {
	t.Helper()
	since := map[string]time.Duration{}
	var texts []string
	for now := time.Duration(0); now <= at; now += time.Minute {
		query := check.Must(engine.NewInstantQuery(t.Context(), data, nil, rule.Expr, time.Unix(0, 0).Add(now)))(t)
		vector := check.Must(query.Exec(t.Context()).Vector())(t)
		active := map[string]time.Duration{}
		texts = nil
		for _, element := range vector {
			key := element.Metric.String()
			begin, was := since[key]
			if !was {
				begin = now
			}
			if active[key] = begin; now-begin < time.Duration(rule.For) {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(rule.Annotations)) {
				data := template.AlertTemplateData(element.Metric.Map(), nil, "", element)
				text := "{{$labels := .Labels}}{{$value := .Value}}" + rule.Annotations[name]
				expanded, err := template.NewTemplateExpander(t.Context(), text, rule.Alert, data, model.Time(now.Milliseconds()),
					func(context.Context, string, time.Time) (promql.Vector, error) { return nil, nil }, nil, nil).Expand()
				check.NoError(t, err)
				texts = append(texts, name+": "+expanded)
			}
		}
		since = active
	}
	return texts
}

const runbook = "https://github.com/corbel-run/corbel/blob/main/docs/reference/reasons.md#"

// TestAlerts has series for each alert with which it fires, and with which it does not.
func TestAlerts(t *testing.T) {
	const of = `{controller="` + controller + `", `
	said := func(anchor, summary string) []string {
		return []string{"runbook_url: " + runbook + anchor, "summary: " + summary}
	}
	tests := []struct {
		name, alert string
		series      []string
		at          time.Duration
		want        []string
	}{
		{"a component fails", "ComponentError", []string{"corbel_components" + of + `state="Error", reason="Timeout"} 0x5 2x60`, "corbel_components" + of + `state="Ready", reason="Ready"} 7x60`}, 25 * time.Minute,
			said("timeout", "2 components of "+controller+" have failed: Timeout")},
		{"a component fails for a moment", "ComponentError", []string{"corbel_components" + of + `state="Error", reason="Error"} 0x5 1x10 0x60`}, 25 * time.Minute, nil},
		{"a component of another operator fails", "ComponentError", []string{`corbel_components{controller="other.example.com", state="Error", reason="Error"} 1x60`}, 25 * time.Minute, nil},
		{"a component is under way for long", "ComponentNotReady", []string{"corbel_components" + of + `state="Processing", reason="Processing"} 1x90`}, 65 * time.Minute,
			said("processing", "1 components of "+controller+" are not ready yet: Processing")},
		{"a component becomes ready", "ComponentNotReady", []string{"corbel_components" + of + `state="Processing", reason="Processing"} 1x30 0x60`}, 65 * time.Minute, nil},
		{"an approval is missing", "ComponentWaitsForApproval", []string{"corbel_components" + of + `state="Pending", reason="ApprovalRequired"} 1x1500`}, 1445 * time.Minute,
			said("approvalrequired", "1 components of "+controller+" wait for an approval")},
		{"an approval is given the same day", "ComponentWaitsForApproval", []string{"corbel_components" + of + `state="Pending", reason="ApprovalRequired"} 1x300 0x1500`}, 1445 * time.Minute, nil},
		{"a deletion is blocked", "ComponentDeletionStuck", []string{"corbel_components" + of + `state="Deleting", reason="DeletionBlocked"} 1x90`}, 65 * time.Minute,
			said("deletionblocked", "1 components of "+controller+" are being deleted for an hour: DeletionBlocked")},
		{"a deletion ends", "ComponentDeletionStuck", []string{"corbel_components" + of + `state="Deleting", reason="DeletionProcessing"} 1x20 0x90`}, 65 * time.Minute, nil},
		{"drift again and again", "DependentsDrift", []string{"corbel_writes_total" + of + `verb="override", reason="drifted"} 0+1x200`}, 150 * time.Minute,
			said("dependentsdrift", "another client changes dependent objects of "+controller+" again and again")},
		{"drift once", "DependentsDrift", []string{"corbel_writes_total" + of + `verb="override", reason="drifted"} 0x20 3x200`, "corbel_writes_total" + of + `verb="create", reason="missing"} 0+5x200`}, 150 * time.Minute, nil},
		{"writes are refused", "WritesFail", []string{"corbel_write_errors_total" + of + `verb="create", class="Denied"} 0+1x90`}, 60 * time.Minute,
			said("writesfail", "writes of dependent objects of "+controller+" fail: Denied")},
		{"conflicts", "WritesFail", []string{"corbel_write_errors_total" + of + `verb="create", class="Conflict"} 0+1x90`}, 60 * time.Minute, nil},
		{"an orphan", "OrphansFound", []string{`corbel_orphans_found_total{controller="` + controller + `"} 0x20 1x90`}, 30 * time.Minute,
			said("orphansfound", "objects of "+controller+" were in no inventory")},
		{"an orphan long ago", "OrphansFound", []string{`corbel_orphans_found_total{controller="` + controller + `"} 0x20 1x200`}, 150 * time.Minute, nil},
		{"renderings that flap", "RendersHeldBack", []string{`corbel_renders_held_back_total{controller="` + controller + `"} 0+1x150`}, 120 * time.Minute,
			said("rendersheldback", "manifests of "+controller+" change with every rendering")},
		{"stable renderings", "RendersHeldBack", []string{`corbel_renders_held_back_total{controller="` + controller + `"} 0x150`}, 120 * time.Minute, nil},
		{"the API server fails", "RequestsFail", []string{
			`corbel_requests_total{job="shop", verb="read", code="5xx"} 0+30x60`, `corbel_requests_total{job="shop", verb="read", code="2xx"} 0+30x60`,
			`controller_runtime_max_concurrent_reconciles{job="shop", controller="` + controller + `"} 5x60`}, 40 * time.Minute,
			said("requestsfail", "50% of the requests to API servers fail")},
		{"another operator's requests fail", "RequestsFail", []string{
			`corbel_requests_total{job="other", verb="read", code="5xx"} 0+30x60`, `corbel_requests_total{job="shop", verb="read", code="2xx"} 0+30x60`,
			`controller_runtime_max_concurrent_reconciles{job="shop", controller="` + controller + `"} 5x60`}, 40 * time.Minute, nil},
		{"slow reconciles", "ReconcilesSlow", []string{
			"corbel_reconcile_duration_seconds_bucket" + of + `le="60"} 0+1x150`, "corbel_reconcile_duration_seconds_bucket" + of + `le="300"} 0+4x150`, "corbel_reconcile_duration_seconds_bucket" + of + `le="+Inf"} 0+4x150`}, 120 * time.Minute,
			said("reconcilesslow", "every tenth reconcile of "+controller+" takes more than a minute")},
		{"fast reconciles", "ReconcilesSlow", []string{
			"corbel_reconcile_duration_seconds_bucket" + of + `le="60"} 0+4x150`, "corbel_reconcile_duration_seconds_bucket" + of + `le="300"} 0+4x150`, "corbel_reconcile_duration_seconds_bucket" + of + `le="+Inf"} 0+4x150`}, 120 * time.Minute, nil},
		{"no operator", "OperatorDown", []string{`controller_runtime_max_concurrent_reconciles{controller="other.example.com"} 5x60`}, 20 * time.Minute,
			said("operatordown", "no operator reconciles "+controller)},
		{"an operator", "OperatorDown", []string{`controller_runtime_max_concurrent_reconciles{controller="` + controller + `"} 5x60`}, 20 * time.Minute, nil},
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: language})
	fired, quiet := map[string]bool{}, map[string]bool{}
	rules := alerts(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			index := slices.IndexFunc(rules, func(r rulefmt.Rule) bool { return r.Alert == test.alert })
			if index < 0 {
				t.Fatalf("there is no alert %s", test.alert)
			}
			if test.want != nil {
				fired[test.alert] = true
			} else {
				quiet[test.alert] = true
			}
			check.Equal(t, test.want, firing(t, engine, database(t, test.series), rules[index], test.at))
		})
	}
	page := check.Must(os.ReadFile(filepath.Join(root, "docs/reference/reasons.md")))(t)
	for _, rule := range rules {
		if !fired[rule.Alert] || !quiet[rule.Alert] {
			t.Errorf("the alert %s lacks a test in which it fires, or one in which it does not", rule.Alert)
		}
		anchor, found := strings.CutPrefix(rule.Annotations["runbook_url"], runbook)
		if !found {
			t.Errorf("the alert %s has no runbook", rule.Alert)
		}
		if anchor != "{{ $labels.reason | toLower }}" && !slices.Contains(headings(string(page)), anchor) {
			t.Errorf("docs/reference/reasons.md has no section #%s for the alert %s", anchor, rule.Alert)
		}
	}
	for _, recorded := range recordedStatuses(t) {
		if !slices.Contains(headings(string(page)), strings.ToLower(recorded.Reason)) {
			t.Errorf("docs/reference/reasons.md has no section #%s", strings.ToLower(recorded.Reason))
		}
	}
}

// headings returns the anchors of a page whose headings are single words.
func headings(page string) (anchors []string) {
	for _, heading := range regexp.MustCompile(`(?m)^#+ (\w+)$`).FindAllStringSubmatch(page, -1) {
		anchors = append(anchors, strings.ToLower(heading[1]))
	}
	return anchors
}
