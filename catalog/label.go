package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/workload"
)

// label gives the full name of the label for a key of the file.
func (b *builder) label(key string) string {
	prefix := b.in.Prefix
	if prefix == "" {
		prefix = "rouse"
	}
	return prefix + "." + strings.ReplaceAll(key, "_", "-")
}

// labelSettings reads the labels of one container against the table, ordered
// by key. Each wrong one takes the draft out.
func (b *builder) labelSettings(d *draft, c workload.Container, table strict.Table) []strict.Setting {
	var settings []strict.Setting
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		if name == "enable" || name == "name" {
			continue // read when the containers were sorted into drafts
		}
		key := strings.ReplaceAll(name, "-", "_")
		field := table.Find(key)
		if field == nil || strings.Contains(name, "_") {
			b.reject(d, c.Name, fmt.Sprintf("unknown label %q", b.label("")+name), b.nearestLabel(name, table))
			continue
		}
		s := strict.Setting{Key: key, Text: field.Value.Split(c.Labels[name]), Place: c.Name}
		if err := checkAll(field.Value, s.Text); err != nil {
			p := strict.ProblemOf(c.Name, b.label(key), err)
			b.reject(d, p.Place, p.Message, p.Fix)
			continue
		}
		settings = append(settings, s)
	}
	return append(settings, b.foreignSettings(d, c, settings, table)...)
}

func checkAll(v strict.Value, items []string) error {
	for _, item := range items {
		if err := v.Check(item); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) nearestLabel(name string, table strict.Table) string {
	known := []string{b.label("enable"), b.label("name")}
	for _, key := range table.Names() {
		known = append(known, b.label(key))
	}
	return strict.DidYouMean(b.label("")+name, known)
}

// agreed puts the labels of all containers of a draft together. Replicas that
// contradict each other take it out.
func (b *builder) agreed(d *draft, table strict.Table) []strict.Setting {
	var settings []strict.Setting
	given := map[string]strict.Setting{} // key -> the first that was given
	for _, c := range d.containers {
		for _, s := range b.labelSettings(d, c, table) {
			first, seen := given[s.Key]
			if !seen {
				given[s.Key] = s
				settings = append(settings, s)
			} else if !slices.Equal(first.Text, s.Text) {
				b.reject(d, s.Place, fmt.Sprintf("replicas of %s disagree about %s: %s has %q, %s has %q",
					d.name, b.label(s.Key), first.Place, strings.Join(first.Text, ","), s.Place, strings.Join(s.Text, ",")),
					"give both the same value, or another "+b.label("name"))
			}
		}
	}
	return settings
}
