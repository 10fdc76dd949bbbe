package strict

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Reader reads an Opaque value from its node and returns what is wrong.
type Reader func(file string, node *yaml.Node) []Problem

// Place is where the node begins: file:line:col.
func Place(file string, n *yaml.Node) string {
	return fmt.Sprintf("%s:%d:%d", file, n.Line, n.Column)
}

// Decode reads the mapping into the table's values, and returns what it was
// given, in the order of the file, and every problem. A nil node is empty.
func (t Table) Decode(file string, mapping *yaml.Node) ([]Setting, []Problem) {
	d := decoder{file: file, table: t}
	if mapping != nil {
		d.mapping("", mapping)
	}
	return d.settings, d.problems
}

type decoder struct {
	file     string
	table    Table
	settings []Setting
	problems []Problem
}

func (d *decoder) problem(n *yaml.Node, message, fix string) {
	d.problems = append(d.problems, Problem{Place(d.file, n), message, fix})
}

// mapping reads the section that prefix names; "" is the whole.
func (d *decoder) mapping(prefix string, n *yaml.Node) {
	level := d.table
	if prefix != "" {
		level = d.table.Under(prefix)
		prefix += "."
	}
	seen := map[string]int{} // key -> line
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		name := key.Value
		if line := seen[name]; line != 0 {
			d.problem(key, fmt.Sprintf("%s%s is given twice", prefix, name), fmt.Sprintf("the first is in line %d; keep one", line))
			continue
		}
		seen[name] = key.Line
		d.entry(entry{key: key, value: value, full: prefix + name, level: level})
	}
}

// An entry is one key of a mapping with its value.
type entry struct {
	key, value *yaml.Node
	full       string // with the section's name
	level      Table  // what is known in this section
}

func (d *decoder) entry(e entry) {
	if k := d.table.Find(e.full); k != nil && e.key.Kind == yaml.ScalarNode && !strings.Contains(e.key.Value, ".") {
		d.value(k, e)
		return
	}
	section := d.table.Under(e.full)
	switch {
	case len(section) == 0 || strings.Contains(e.key.Value, "."):
		d.unknown(e)
	case isNull(e.value): // an empty section: all lines of it are commented out
	case e.value.Kind != yaml.MappingNode:
		d.problem(e.value, fmt.Sprintf("%s is %s where a mapping is wanted", e.full, kindOf(e.value)), "known here: "+strings.Join(section.heads(), ", "))
	default:
		d.mapping(e.full, e.value)
	}
}

// unknown reports a key that is not in the table, with the nearest name of
// its section, else the nearest of all.
func (d *decoder) unknown(e entry) {
	fix := DidYouMean(e.key.Value, e.level.heads())
	if Nearest(e.key.Value, e.level.heads()) == "" {
		if k := d.elsewhere(e.key.Value); k != "" {
			fix = "did you mean " + strings.Replace(k, ".", ": { ", 1) + ": … }?"
		}
	}
	d.problem(e.key, fmt.Sprintf("unknown key %q", e.full), fix)
}

// elsewhere looks for the word as the last part of a key of another section.
func (d *decoder) elsewhere(word string) string {
	for _, k := range d.table {
		last := k.Name[strings.LastIndexByte(k.Name, '.')+1:]
		if strings.Contains(k.Name, ".") && (fold(last) == fold(word) || fold(k.Name) == fold(word)) {
			return k.Name
		}
	}
	return ""
}

func (d *decoder) value(k *Key, e entry) {
	if k.Value.Shape == Opaque {
		d.problems = append(d.problems, k.Value.Node(d.file, e.value)...)
		d.settings = append(d.settings, Setting{Key: k.Name, Place: Place(d.file, e.key)})
		return
	}
	items, ok := d.items(k, e)
	if !ok {
		return
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = item.text
		if err := k.Value.Check(item.text); err != nil {
			d.problems = append(d.problems, ProblemOf(Place(d.file, item.node), e.full, err))
			ok = false
		}
	}
	if !ok {
		return
	}
	place := Place(d.file, e.key)
	if err := k.Value.Set(texts); err != nil {
		d.problems = append(d.problems, ProblemOf(place, e.full, err))
		return
	}
	d.settings = append(d.settings, Setting{k.Name, texts, place})
}

// An item is the text of one value, and the node to blame for it.
type item struct {
	text string
	node *yaml.Node
}

// items takes the value apart according to its shape.
func (d *decoder) items(k *Key, e entry) ([]item, bool) {
	n := e.value
	switch {
	case isNull(n):
		d.problem(n, e.full+" has no value", "give it one, or remove the line")
		return nil, false
	case n.Kind == yaml.ScalarNode && k.Value.Shape != Words && k.Value.Shape != Pairs:
		return []item{{n.Value, n}}, true
	case n.Kind == yaml.SequenceNode && k.Value.Shape != Scalar:
		return d.list(k, e)
	case n.Kind == yaml.MappingNode && k.Value.Shape == Pairs:
		return d.pairs(e)
	}
	d.problem(n, fmt.Sprintf("%s is %s where %s is wanted", e.full, kindOf(n), k.Value.Shape), "")
	return nil, false
}

func (d *decoder) list(k *Key, e entry) ([]item, bool) {
	var items []item
	ok := true
	for _, n := range e.value.Content {
		n = resolve(n)
		if n.Kind == yaml.MappingNode && len(k.Value.Parts) > 0 {
			text, whole := d.parts(k, e, n)
			items = append(items, item{text, n})
			ok = ok && whole
			continue
		}
		if n.Kind != yaml.ScalarNode || isNull(n) {
			d.problem(n, fmt.Sprintf("%s has %s among its values", e.full, kindOf(n)), "write plain values")
			ok = false
			continue
		}
		items = append(items, item{n.Value, n})
	}
	return items, ok
}

// parts reads an item that is written as a mapping: each part once, and
// nothing else.
func (d *decoder) parts(k *Key, e entry, n *yaml.Node) (string, bool) {
	texts := make([]string, len(k.Value.Parts))
	ok := true
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		at := slices.Index(k.Value.Parts, key.Value)
		switch {
		case at < 0:
			d.problem(key, fmt.Sprintf("unknown key %q in %s", key.Value, e.full), DidYouMean(key.Value, k.Value.Parts))
			ok = false
		case value.Kind != yaml.ScalarNode || isNull(value) || value.Value == "":
			d.problem(value, fmt.Sprintf("%s has no %s", e.full, key.Value), "write one value")
			ok = false
		case texts[at] != "":
			d.problem(key, fmt.Sprintf("%s has %s twice", e.full, key.Value), "keep one")
			ok = false
		default:
			texts[at] = value.Value
		}
	}
	if i := slices.Index(texts, ""); ok && i >= 0 {
		d.problem(n, fmt.Sprintf("%s has an item without %s", e.full, k.Value.Parts[i]), "each needs "+strings.Join(k.Value.Parts, " and "))
		ok = false
	}
	return strings.Join(texts, "="), ok
}

func (d *decoder) pairs(e entry) ([]item, bool) {
	var items []item
	ok := true
	for i := 0; i+1 < len(e.value.Content); i += 2 {
		key, n := e.value.Content[i], resolve(e.value.Content[i+1])
		if n.Kind != yaml.ScalarNode || key.Kind != yaml.ScalarNode {
			d.problem(n, fmt.Sprintf("%s has %s among its values", e.full, kindOf(n)), "write KEY: value")
			ok = false
			continue
		}
		text := n.Value
		if isNull(n) {
			text = ""
		}
		items = append(items, item{key.Value + "=" + text, n})
	}
	return items, ok
}

// resolve follows an alias to what it stands for. An anchor cannot name an
// alias, so one step is enough.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

func kindOf(n *yaml.Node) string {
	switch {
	case isNull(n):
		return "nothing"
	case n.Kind == yaml.ScalarNode:
		return "one value"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	}
	return "an alias"
}

// String names the shape in a message.
func (s Shape) String() string {
	switch s {
	case Scalar:
		return "one value"
	case Pairs:
		return "a mapping"
	}
	return "a list"
}
