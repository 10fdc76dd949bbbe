package main

import (
	"fmt"
	"io"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/internal/strict"
)

// values gives every setting but lists of entries as a tree, fit for JSON, with
// passwords blotted out.
func (c *Config) values() map[string]any {
	tree := map[string]any{}
	for _, k := range configTable(c) {
		if k.Value.Shape == strict.Opaque {
			continue
		}
		value := k.Value.JSON()
		if isSecret(k.Name) {
			value = redact(fmt.Sprint(value))
		}
		section, last := tree, k.Name
		if head, rest, ok := strings.Cut(k.Name, "."); ok {
			if tree[head] == nil {
				tree[head] = map[string]any{}
			}
			section, last = tree[head].(map[string]any), rest
		}
		section[last] = value
	}
	return tree
}

// view is values with the webhooks and the workloads, as the API and `config show -o json`
// give it.
func (c *Config) view() map[string]any {
	tree := c.values()
	list := []map[string]any{}
	for _, e := range c.Workloads {
		settings := map[string]any{}
		for _, s := range e.Settings {
			settings[s.Key] = s.Text
		}
		list = append(list, map[string]any{"name": e.Name, "origin": e.Place, "settings": settings})
	}
	tree["workloads"] = list
	tree["webhooks"] = webhookViews(c.Webhooks)
	return tree
}

// redact replaces the passwords in a list of URLs. What does not parse is
// replaced whole: it may be a password too.
func redact(urls string) string {
	parts := strings.Split(urls, ",")
	for i, part := range parts {
		parts[i] = redactURL(part)
	}
	return strings.Join(parts, ",")
}

// redactURL is redact for one URL, which is left as it is where it has no
// secret.
func redactURL(text string) string {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil:
		return "xxxxx"
	case u.User == nil:
		return text
	}
	if _, ok := u.User.Password(); !ok {
		u.User = url.User("xxxxx") // a token
	}
	return u.Redacted()
}

// A printer writes a configuration as the YAML it could have been read from,
// each key with a remark.
type printer struct {
	out    io.Writer
	remark func(key string) string // empty: none
}

// show writes the configuration with the meaning, or the origin, of each key.
func (c *Config) show(out io.Writer, origins bool) error {
	p := printer{out: out, remark: c.Origin}
	if !origins {
		p.remark = c.meaning
	}
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, k := range configTable(c) {
		if k.Value.Shape != strict.Opaque {
			p.put(root, k, k.Value.Text())
		}
	}
	if len(c.Webhooks) > 0 {
		root.Content = append(root.Content, keyNode("webhooks"), webhookNodes(c.Webhooks, origins))
	}
	if len(c.Workloads) > 0 {
		root.Content = append(root.Content, keyNode("workloads"), c.entryNodes(origins))
	}
	enc := yaml.NewEncoder(out)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return fmt.Errorf("print the configuration: %w", err)
	}
	return enc.Close()
}

func (c *Config) meaning(key string) string { return configTable(c).Find(key).Doc }

// put adds one key below the sections that its name spells.
func (p printer) put(n *yaml.Node, k strict.Key, texts []string) {
	name := k.Name
	if head, rest, ok := strings.Cut(k.Name, "."); ok {
		n, name = section(n, head), rest
	}
	if isSecret(k.Name) {
		texts = []string{redact(texts[0])}
	}
	value := valueNode(k.Value, texts)
	value.LineComment = p.remark(k.Name)
	n.Content = append(n.Content, keyNode(name), value)
}

// section finds the mapping of that name below n, or makes it.
func section(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	s := &yaml.Node{Kind: yaml.MappingNode}
	n.Content = append(n.Content, keyNode(name), s)
	return s
}

// entryNodes are the entries of the file as they were given.
func (c *Config) entryNodes(origins bool) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, e := range c.Workloads {
		item := &yaml.Node{Kind: yaml.MappingNode}
		table := entryTable()
		for _, s := range e.Settings {
			k := table.Find(s.Key)
			p := printer{remark: func(string) string { return "" }}
			if origins {
				p.remark = func(string) string { return s.Place }
			}
			p.put(item, *k, s.Text)
		}
		list.Content = append(list.Content, item)
	}
	return list
}

func keyNode(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// valueNode writes the texts in the shape of the value.
func valueNode(v strict.Value, texts []string) *yaml.Node {
	if v.Shape == strict.Scalar {
		return scalar(v, texts[0])
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, t := range texts {
		list.Content = append(list.Content, scalar(v, t))
	}
	return list
}

// scalar writes a text so that it is read back as the type it has.
func scalar(v strict.Value, t string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: t, Tag: "!!str"}
	switch v.Schema["type"] {
	case "boolean":
		n.Tag = "!!bool"
	case "integer":
		n.Tag = "!!int"
	}
	return n
}
