// Package strict reads settings against a table of keys, whatever they come
// from: a YAML file, an environment, a flag, the labels of a container.
//
// The table is the one description of a setting. It says what the key is
// called, what it means, how its text is read and where the value goes; the
// decoder, the nearest known name of a misspelt key, the JSON Schema and the
// printed configuration all come from it, so they cannot disagree.
//
// Nothing is forgiven and nothing is hidden: an unknown key, a key given
// twice, a list where one value is wanted and a value that does not parse
// are each a Problem with its place, and every one of them is reported. A
// setting that has a problem is not applied, the others are.
//
// The package knows neither the keys nor what is done with them. Input never
// makes it panic.
package strict

import "strings"

// A Key is one setting.
type Key struct {
	// Name is its path in the file, sections joined by dots: "nats.url".
	Name string
	// Doc says in one sentence what the setting does.
	Doc string
	// Value is how the setting is read and where it goes.
	Value Value
}

// A Table is a set of keys, in the order in which they are printed.
type Table []Key

// Find gives the key of that name, nil if there is none.
func (t Table) Find(name string) *Key {
	for i := range t {
		if t[i].Name == name {
			return &t[i]
		}
	}
	return nil
}

// Names lists the names of all keys.
func (t Table) Names() []string {
	names := make([]string, len(t))
	for i, k := range t {
		names[i] = k.Name
	}
	return names
}

// A Setting is one key with the text it was given and where.
type Setting struct {
	Key string
	// Text is one string for a scalar, and one for each item of a list.
	Text []string
	// Place is file:line:col, or what else names the source.
	Place string
}

// Apply stores the setting in the place that the table binds to its key. A
// setting that the table does not know is ignored: the caller has looked.
func (t Table) Apply(s Setting) error {
	if k := t.Find(s.Key); k != nil {
		return k.Value.Set(s.Text)
	}
	return nil
}

// A Problem is one thing wrong with the input.
type Problem struct {
	// Place is file:line:col, or what else names the source.
	Place string
	// Message says what is wrong, Fix what to do about it.
	Message, Fix string
}

// Error gives the problem in one line.
func (p Problem) Error() string {
	if p.Fix == "" {
		return p.Place + ": " + p.Message
	}
	return p.Place + ": " + p.Message + " (" + p.Fix + ")"
}

// A Wrong is what a Value's Set and Check return for text that does not do:
// what is wrong with it, and how to write it instead.
type Wrong struct{ Message, Fix string }

// Error gives both parts in one line.
func (w *Wrong) Error() string {
	if w.Fix == "" {
		return w.Message
	}
	return w.Message + ": " + w.Fix
}

// ProblemOf makes the problem of an error that Set or Check returned for key.
func ProblemOf(place, key string, err error) Problem {
	p := Problem{Place: place, Message: key + ": " + err.Error()}
	if w, ok := err.(*Wrong); ok {
		p.Message, p.Fix = key+": "+w.Message, w.Fix
	}
	return p
}

// Under gives the keys below prefix, with the prefix cut off.
func (t Table) Under(prefix string) Table {
	var sub Table
	for _, k := range t {
		if rest, ok := strings.CutPrefix(k.Name, prefix+"."); ok {
			k.Name = rest
			sub = append(sub, k)
		}
	}
	return sub
}

// heads lists the first parts of the names, each once, in order.
func (t Table) heads() []string {
	var heads []string
	seen := map[string]bool{} // head -> listed already
	for _, k := range t {
		head, _, _ := strings.Cut(k.Name, ".")
		if !seen[head] {
			seen[head] = true
			heads = append(heads, head)
		}
	}
	return heads
}
