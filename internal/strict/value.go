package strict

import (
	"fmt"
	"strconv"
	"strings"
)

// Shape says what a value looks like in a file.
type Shape uint8

const (
	// Scalar is one value.
	Scalar Shape = iota
	// List is a list of values; a lone value is a list of one.
	List
	// Words is a list of values that is never written as one.
	Words
	// Pairs is a list of KEY=value, or a mapping of keys to values.
	Pairs
	// Opaque is read by the caller from the YAML itself: see Key.Value.Node.
	Opaque
)

// A Value is how a setting is read, printed and described. Constructors bind
// it to a variable; the functions are not safe for concurrent use.
type Value struct {
	Shape Shape
	// Check reads one item without storing it.
	Check func(item string) error
	// Set stores the value: one item for a Scalar, any number for the others.
	Set func(items []string) error
	// Text gives the stored value in the form that Set takes.
	Text func() []string
	// Schema is the JSON Schema of one item.
	Schema map[string]any
	// Parts are the keys of an item of a List that may be written as a mapping
	// too; its text is their values, joined by '='.
	Parts []string
	// Node reads an Opaque value; all else is empty then, but for Schema.
	Node Reader
}

// Split cuts the text of an environment variable, flag or label into the
// items of the value: at commas for a list, not at all for a scalar.
func (v Value) Split(text string) []string {
	if v.Shape == Scalar {
		return []string{text}
	}
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// A Codec turns the text of one item into a T and back. Schema describes the
// text.
type Codec[T any] struct {
	Parse  func(string) (T, error)
	Format func(T) string
	Schema map[string]any
}

// One binds a scalar to p.
func One[T any](p *T, c Codec[T]) Value {
	return Value{
		Check: func(item string) error {
			_, err := c.Parse(item)
			return err
		},
		Set: func(items []string) error {
			if len(items) != 1 {
				return &Wrong{fmt.Sprintf("%d values where one is wanted", len(items)), "write one"}
			}
			v, err := c.Parse(items[0])
			if err == nil {
				*p = v
			}
			return err
		},
		Text:   func() []string { return []string{c.Format(*p)} },
		Schema: c.Schema,
	}
}

// Many binds a list of the given shape to p. An empty list replaces what p
// held by nothing.
func Many[T any](p *[]T, shape Shape, c Codec[T]) Value {
	return Value{
		Shape: shape,
		Check: func(item string) error {
			_, err := c.Parse(item)
			return err
		},
		Set: func(items []string) error {
			vs, err := parseAll(items, c.Parse)
			if err == nil {
				*p = vs
			}
			return err
		},
		Text: func() []string {
			texts := make([]string, len(*p))
			for i, v := range *p {
				texts[i] = c.Format(v)
			}
			return texts
		},
		Schema: c.Schema,
	}
}

func parseAll[T any](items []string, parse func(string) (T, error)) ([]T, error) {
	var vs []T
	for _, item := range items {
		v, err := parse(item)
		if err != nil {
			return nil, err
		}
		vs = append(vs, v)
	}
	return vs, nil
}

// Text reads any text that passes check; a nil check passes all.
func Text(check func(string) error) Codec[string] {
	return Codec[string]{
		Parse: func(s string) (string, error) {
			if check == nil {
				return s, nil
			}
			return s, check(s)
		},
		Format: func(s string) string { return s },
		Schema: map[string]any{"type": "string"},
	}
}

// Int reads a whole number from low to high.
func Int(low, high int) Codec[int] {
	return Codec[int]{
		Parse: func(s string) (int, error) {
			n, err := strconv.Atoi(s)
			if err != nil || n < low || n > high {
				return 0, &Wrong{fmt.Sprintf("%q is not a whole number from %d to %d", s, low, high), "write one without a unit"}
			}
			return n, nil
		},
		Format: strconv.Itoa,
		Schema: map[string]any{"type": "integer", "minimum": low, "maximum": high},
	}
}

// Part reads a number from 0 to 1.
func Part() Codec[float64] {
	return Codec[float64]{
		Parse: func(s string) (float64, error) {
			f, err := strconv.ParseFloat(s, 64)
			if err != nil || !(f >= 0 && f <= 1) { // nor no number
				return 0, &Wrong{fmt.Sprintf("%q is not a number from 0 to 1", s), "write 0.1 for a tenth"}
			}
			return f, nil
		},
		Format: func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) },
		Schema: map[string]any{"type": "number", "minimum": 0, "maximum": 1},
	}
}

// Bool reads true or false.
func Bool() Codec[bool] {
	return Codec[bool]{
		Parse: func(s string) (bool, error) {
			switch s {
			case "true":
				return true, nil
			case "false":
				return false, nil
			}
			return false, &Wrong{fmt.Sprintf("%q is neither true nor false", s), "write true or false"}
		},
		Format: strconv.FormatBool,
		Schema: map[string]any{"type": "boolean"},
	}
}

// Enum reads one of the options.
func Enum[T ~string](options ...T) Codec[T] {
	words := make([]string, len(options))
	for i, o := range options {
		words[i] = string(o)
	}
	return Codec[T]{
		Parse: func(s string) (T, error) {
			for _, o := range options {
				if string(o) == s {
					return o, nil
				}
			}
			return "", &Wrong{fmt.Sprintf("%q is none of %s", s, strings.Join(words, ", ")), DidYouMean(s, words)}
		},
		Format: func(o T) string { return string(o) },
		Schema: map[string]any{"type": "string", "enum": words},
	}
}
