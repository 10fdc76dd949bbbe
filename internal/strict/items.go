package strict

import "go.yaml.in/yaml/v3"

// An ItemKind says how the items of a list are called in errors.
type ItemKind struct {
	List, Item string // "workloads", "workload"
	Key        string // the first key of an item, as an example: "name"
}

// Items reads a list of mappings, each by read, which is given the place of
// the item and its mapping. An item that has a problem is left out, the others
// are returned. A list all of whose items are commented out is empty.
func Items[T any](file string, list *yaml.Node, kind ItemKind, read func(place string, mapping *yaml.Node) (T, []Problem)) (items []T, problems []Problem) {
	if list.Kind == yaml.ScalarNode && list.ShortTag() == "!!null" {
		return nil, nil
	}
	example := "write - " + kind.Key + ": …"
	if list.Kind != yaml.SequenceNode {
		return nil, []Problem{{Place: Place(file, list), Message: kind.List + " is not a list", Fix: example + " for each " + kind.Item}}
	}
	for _, node := range list.Content {
		place := Place(file, node)
		if node.Kind == yaml.AliasNode && node.Alias != nil {
			node = node.Alias
		}
		if node.Kind != yaml.MappingNode {
			problems = append(problems, Problem{Place: place, Message: "a " + kind.Item + " is not a mapping", Fix: example})
			continue
		}
		item, wrong := read(place, node)
		if problems = append(problems, wrong...); len(wrong) == 0 {
			items = append(items, item)
		}
	}
	return items, problems
}
