package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// outputFormat is the form in which a command writes its data. It is a flag.
type outputFormat string

const (
	formatTable   outputFormat = "table"
	formatAsJSON  outputFormat = "json"
	formatAsYAML  outputFormat = "yaml"
	formatChoices              = "table, json or yaml"
)

func (f *outputFormat) String() string { return string(*f) }

// Type names the value in a usage text.
func (f *outputFormat) Type() string { return "format" }

// Set takes one of the names.
func (f *outputFormat) Set(s string) error {
	switch outputFormat(s) {
	case formatTable, formatAsJSON, formatAsYAML:
		*f = outputFormat(s)
		return nil
	}
	return fmt.Errorf("%q is not an output format: use %s", s, formatChoices)
}

// print writes v as JSON or YAML, or lets table write it for a person.
func (g *globals) print(out io.Writer, v any, table func(io.Writer) error) error {
	switch g.output {
	case formatAsJSON:
		return writeJSON(out, v)
	case formatAsYAML:
		return writeYAML(out, v)
	}
	return table(out)
}

// printLine is print for one of many values that come one after the other:
// JSON takes one line each, YAML one document.
func (g *globals) printLine(out io.Writer, v any, table func(io.Writer) error) error {
	switch g.output {
	case formatAsJSON:
		return json.NewEncoder(out).Encode(v)
	case formatAsYAML:
		if _, err := io.WriteString(out, "---\n"); err != nil {
			return err
		}
		return writeYAML(out, v)
	}
	return table(out)
}

// writeYAML writes v with the keys, and in the order, that its JSON has.
func writeYAML(out io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	node, err := yamlNode(d)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	e := yaml.NewEncoder(out)
	e.SetIndent(2)
	if err := e.Encode(node); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return e.Close()
}

// yamlNode reads the next JSON value.
func yamlNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	if open, ok := token.(json.Delim); ok {
		return yamlNodes(d, open)
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	switch v := token.(type) {
	case string:
		n.Tag, n.Value = "!!str", v
	case json.Number:
		n.Tag, n.Value = "", v.String()
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(v)
	}
	return n, nil
}

// yamlNodes reads the rest of an object or array, its keys as values.
func yamlNodes(d *json.Decoder, open json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if open == '{' {
		n.Kind = yaml.MappingNode
	}
	for d.More() {
		child, err := yamlNode(d)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, child)
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle // [] and {}
	}
	_, err := d.Token()
	return n, err
}
