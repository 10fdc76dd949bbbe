package migration

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Write writes the plan as a compose file that goes over the other.
func (p Plan) Write(out io.Writer) error {
	head := fmt.Sprintf("Proposed by rouse doctor --import for %s, from %s.\nLook through it, then save it as compose.override.yaml beside your compose file.", comment(p.File), strings.Join(p.Products, " and "))
	for _, remark := range p.Remarks {
		head += "\n- " + comment(remark)
	}
	services := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range p.Services {
		services.Content = append(services.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: s.Name, Tag: "!!str"}, s.node())
	}
	root := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
		{Kind: yaml.ScalarNode, Value: "services"}, services,
	}}
	if _, err := io.WriteString(out, "# "+strings.ReplaceAll(head, "\n", "\n# ")+"\n"); err != nil {
		return err
	}
	enc := yaml.NewEncoder(out)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	return enc.Close()
}

func (s *Service) node() *yaml.Node {
	labels := &yaml.Node{Kind: yaml.MappingNode}
	for _, l := range s.Labels {
		labels.Content = append(labels.Content, text(l.Name), remarked(l))
	}
	service := &yaml.Node{Kind: yaml.MappingNode}
	for _, k := range s.Keys {
		service.Content = append(service.Content, text(k.Name), remarked(k))
	}
	if len(s.Labels) > 0 {
		service.Content = append(service.Content, text("labels"), labels)
	}
	if len(s.Remarks) > 0 && len(service.Content) > 0 {
		lines := make([]string, len(s.Remarks))
		for i, remark := range s.Remarks {
			lines[i] = "# " + comment(remark)
		}
		service.Content[0].HeadComment = strings.Join(lines, "\n")
	}
	return service
}

func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

// remarked is a value with what it was made of behind it.
func remarked(l Label) *yaml.Node {
	n := text(l.Value)
	if l.Tag != "" {
		n.Tag = l.Tag
	}
	n.LineComment = comment(l.From)
	return n
}

// comment is a text fit for one line.
func comment(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || c == '\u2028' || c == '\u2029' || c == '\ufeff' {
			return ' '
		}
		return c
	}, s)
}
