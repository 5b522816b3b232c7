// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Documents are what a chart says about its values outside of values.yaml and its schema.
type Documents struct {
	// Readme and Notes are the texts of README.md and templates/NOTES.txt.
	Readme, Notes string
	// Questions is the content of questions.yaml, the form that Rancher shows to users.
	Questions []byte
	// Templates are the texts of the templates, by their names in the chart.
	Templates map[string]string
	// Failure is why the chart cannot be rendered with its default values; empty if it can be.
	Failure string
	// Sample are values with which the chart can be rendered, if it cannot be with its default values.
	Sample map[string]any
}

// The ranks of values that a user needs, and those of the ways in which a document mentions a value.
const (
	rankFailing    = 1000 // the chart fails without the value
	rankDemanded   = 500  // the schema, a template or a question requires the value
	rankDocumented = 100  // a document tells users to set the value
	rankTop        = 50   // a scalar at the top level
	rankSpecific   = 30   // the name of the value is that of an address, a password or another value that differs between installations
	rankRow        = 10   // a long table has the value; it comes after the usual names

	inProse, inBlock, inCommand, inDemand = 20, 30, 40, 45
)

// needs collects how much a user needs each value of a chart that is no object with fields.
type needs struct {
	leaves, objects map[string]*Field
	// order are the paths of the leaves in the order of the tree.
	order []string
	ranks map[string]int
	// mentions counts how often documents mention a value.
	mentions map[string]int
	// sections counts how often prose names an object.
	sections map[section]int
}

// section is an object that prose names, and the rank that its values get by that.
type section struct {
	path string
	rank int
}

// maxMentions is how many mentions of a value count.
const maxMentions = 9

// rank ranks the values of a chart. Values without a rank are those that only the usual names speak for.
func rank(root *Field, d Documents) *needs {
	n := &needs{leaves: map[string]*Field{}, objects: map[string]*Field{}, ranks: map[string]int{}, mentions: map[string]int{}, sections: map[section]int{}}
	n.collect(root, "")
	n.fromFields(Secrets(root))
	n.fromTemplates(d)
	n.fromFailure(d)
	n.readme(d.Readme)
	n.notes(d.Notes)
	n.questions(d.Questions)
	return n
}

// collect finds the leaves below an object.
func (n *needs) collect(object *Field, path string) {
	for _, field := range object.Fields {
		below := join(path, field.Key)
		if field.Type == Object && field.Core == "" {
			n.objects[below] = field
			n.collect(field, below)
			continue
		}
		n.leaves[below] = field
		n.order = append(n.order, below)
	}
}

// ranked returns the paths of the values with a rank, those that are needed most first.
func (n *needs) ranked() []string {
	paths := slices.DeleteFunc(slices.Clone(n.order), func(path string) bool { return n.ranks[path] == 0 })
	score := func(path string) int { return n.ranks[path] + min(n.mentions[path], maxMentions) }
	slices.SortStableFunc(paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(strings.Count(a, "."), strings.Count(b, ".")))
	})
	return paths
}

// raise gives a value at least a rank.
func (n *needs) raise(path string, rank int) { n.ranks[path] = max(n.ranks[path], rank) }

var (
	// demand is a comment that says that a value is to be set, and conditional one that says when.
	demand      = regexp.MustCompile(`(?i)\b(required|mandatory|must (be )?(set|provided?|changed?|specif)|needs? to be (set|changed))`)
	conditional = regexp.MustCompile(`(?i)\b(not required|if|when|only|unless|optional)\b`)
	// placeholder is a default that cannot be right for a user.
	placeholder = regexp.MustCompile(`(?i)example|change[-_ ]?(me|it)|\byour\b|<[^<>]+>|\btodo\b|replace[-_ ]?me`)
	// specific ends the keys, in lower case and without what separates words, of values that differ between installations.
	specific = regexp.MustCompile(`(ur[il]|host|hostname|domain|endpoint|address|broker|server|user|username|email|bucket|bucketname|region|database|dbname|clustername|projectid|accountid|tenantid|clientid)s?$`)
	// general begins the keys of values that are settings of pods, or extensions of the chart.
	general = regexp.MustCompile(`^(extra|additional|custom|common|pod|init|liveness|readiness|startup|security|node|service|override|rolling|update)`)
)

func isDemand(text string) bool { return demand.MatchString(text) && !conditional.MatchString(text) }

// usualScalars are names of scalars at the top level that few users set.
var usualScalars = []string{
	"kubeversion", "clusterdomain", "revisionhistorylimit", "imagepullpolicy", "priorityclassname", "terminationgraceperiodseconds", "schedulername",
	"runtimeclassname", "dnspolicy", "hostnetwork", "podmanagementpolicy", "automountserviceaccounttoken", "minreadyseconds", "progressdeadlineseconds", "namespace",
}

// fromFields ranks values by the schema, by comments, and by their place in the tree.
func (n *needs) fromFields(secrets []string) {
	for _, path := range n.order {
		field := n.leaves[path]
		standIn := placeholder.MatchString(asJSON(field.Default))
		plain := strings.ToLower(strings.Join(wordsOf(field.Key), ""))
		above, _ := cutLast(path)
		isScalar := slices.Contains([]Type{Bool, Integer, Number, String, IntOrString}, field.Type)
		switch {
		case strings.Contains(strings.ToLower(field.Doc), "deprecated"):
		case field.Required:
			n.raise(path, rankDemanded)
		case isDemand(field.Doc) && (isEmpty(field.Default) || standIn):
			n.raise(path, rankDocumented+inDemand)
		case strings.Count(path, ".") >= maxCuratedDepth || above != "" && isAside(above):
		case standIn && strings.Count(path, ".") > 1:
			n.raise(path, rankSpecific+5)
		case standIn && isScalar:
			n.raise(path, rankTop+15)
		case standIn:
			n.raise(path, rankTop+5)
		case slices.Contains(secrets, path) && above == "":
			n.raise(path, rankTop+10)
		case above == "" && isScalar && !slices.Contains(usualScalars, plain) && !strings.HasSuffix(plain, "override"):
			n.raise(path, rankTop)
		case slices.Contains(secrets, path), specific.MatchString(plain) && !strings.HasPrefix(plain, "runas") && field.Type != Bool:
			n.raise(path, rankSpecific)
		}
	}
}

var (
	// requiredValue is a value of the function required, as its argument or before a pipe.
	requiredValue = regexp.MustCompile("required\\s+(?:\"[^\"]*\"|`[^`]*`|\\([^()]*\\))\\s+\\(*\\$?\\.Values\\.([\\w.-]+)|\\.Values\\.([\\w.-]+)\\s*\\|\\s*required\\b")
	failMessage   = regexp.MustCompile("\\bfail\\s+(?:\\(?\\s*printf\\s+)?(\"[^\"]*\"|`[^`]*`)")
	valueInCode   = regexp.MustCompile(`\.Values\.([\w.-]+)`)
)

// fromTemplates ranks values that templates require. If the chart can be rendered without them, they are
// required in branches that are off by default.
func (n *needs) fromTemplates(d Documents) {
	for _, text := range d.Templates {
		for _, match := range requiredValue.FindAllStringSubmatch(text, -1) {
			path := n.leaf(match[1]+match[2], true)
			switch {
			case path == "":
			case d.Failure != "" && isEmpty(n.leaves[path].Default):
				n.raise(path, rankDemanded)
			default:
				n.raise(path, rankDocumented)
			}
		}
		for _, match := range failMessage.FindAllStringSubmatch(text, -1) {
			n.prose(match[1], rankDocumented)
		}
	}
}

var (
	// placeInTemplate is the place that an error of a template names.
	placeInTemplate = regexp.MustCompile(`\(?([\w./-]+):(\d+):\d+\)?`)
	placeInValues   = regexp.MustCompile(`at '/([^']*)'`)
	missingKeys     = regexp.MustCompile(`missing propert(?:y|ies) ([^\n]*)`)
	quotedKey       = regexp.MustCompile(`'([^']+)'`)
)

// fromFailure ranks the values without which the chart cannot be rendered: those that the error names, or those
// at the place in a template that the error names, or else those of the sample.
func (n *needs) fromFailure(d Documents) {
	if d.Failure == "" {
		return
	}
	failing := func(path string, exact bool) {
		if path = n.leaf(path, exact); path != "" {
			n.raise(path, rankFailing)
		}
	}
	for _, word := range pathWord.FindAllString(link.ReplaceAllString(d.Failure, ""), -1) {
		if strings.Contains(word, ".") || n.isTopScalar(word) {
			failing(word, true)
		}
	}
	for _, line := range strings.Split(d.Failure, "\n") {
		var above string
		if at := placeInValues.FindStringSubmatch(line); at != nil {
			above = strings.ReplaceAll(at[1], "/", ".")
			failing(above, false)
		}
		if keys := missingKeys.FindStringSubmatch(line); keys != nil {
			for _, key := range quotedKey.FindAllStringSubmatch(keys[1], -1) {
				failing(join(above, key[1]), false)
			}
		}
	}
	for _, place := range placeInTemplate.FindAllStringSubmatch(d.Failure, -1) {
		for _, match := range valueInCode.FindAllStringSubmatch(d.line(place[1], place[2]), -1) {
			if path := n.leaf(match[1], true); path != "" && isEmpty(n.leaves[path].Default) {
				n.raise(path, rankFailing)
			}
		}
	}
	rank := rankFailing - 1
	for _, path := range n.order {
		if n.ranks[path] >= rankFailing {
			rank = rankDocumented + inBlock
		}
	}
	for _, path := range n.in(d.Sample) {
		n.raise(path, rank)
	}
}

// line returns a line of a template by its path, which begins with the name of the chart. It is empty for a template of a sub-chart.
func (d Documents) line(name, number string) string {
	_, template, _ := strings.Cut(name, "/")
	lines := strings.Split(d.Templates[template], "\n")
	if i, err := strconv.Atoi(number); err == nil && 0 < i && i <= len(lines) {
		return lines[i-1]
	}
	return ""
}

// isTopScalar reports whether a word is the name of a scalar at the top level, and no plain word.
func (n *needs) isTopScalar(word string) bool {
	field := n.leaves[word]
	return field != nil && strings.ToLower(word) != word && field.Type != Core
}

var (
	pathWord = regexp.MustCompile(`[A-Za-z_][\w-]*(?:\[\d*\]|\.[\w-]+)*`)
	elements = regexp.MustCompile(`\[\d*\]`)
)

// leaf returns the path of the value that a document names, or of the value that it is a part of, unless the name
// has to be exact; empty if there is none.
func (n *needs) leaf(name string, exact bool) string {
	name = elements.ReplaceAllString(strings.TrimPrefix(strings.TrimPrefix(name, "."), "Values."), "")
	for at := name; at != ""; at, _ = cutLast(at) {
		if n.leaves[at] != nil {
			return at
		}
		if exact {
			return ""
		}
	}
	return ""
}

// in returns the paths of the values that a document sets. A document that sets more unknown keys than known ones
// is none of values.
func (n *needs) in(document map[string]any) []string {
	known := 0
	for key := range document {
		if slices.ContainsFunc(n.order, func(path string) bool { return path == key || strings.HasPrefix(path, key+".") }) {
			known++
		}
	}
	if known*2 < len(document) {
		return nil
	}
	found := map[string]bool{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		if object, ok := value.(map[string]any); ok && n.leaves[path] == nil {
			for key, inner := range object {
				walk(join(path, key), inner)
			}
			return
		}
		if path = n.leaf(path, false); path != "" {
			found[path] = true
		}
	}
	walk("", document)
	return slices.DeleteFunc(slices.Clone(n.order), func(path string) bool { return !found[path] })
}
