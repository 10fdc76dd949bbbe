package strict

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse reads YAML that holds one mapping, or nothing: then the node is nil.
func Parse(file string, data []byte) (*yaml.Node, []Problem) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, []Problem{syntaxProblem(file, err)}
	}
	root := doc.Content[0]
	if isNull(root) {
		root = nil
	} else if root.Kind != yaml.MappingNode {
		return nil, []Problem{{Place(file, root), "the file holds " + kindOf(root) + " where a mapping is wanted", "write key: value"}}
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		return root, []Problem{{Place(file, &second), "a second document begins", "keep one document in the file"}}
	} else if !errors.Is(err, io.EOF) {
		return nil, []Problem{syntaxProblem(file, err)}
	}
	return root, nil
}

var syntaxLine = regexp.MustCompile(`^yaml: (?:unmarshal errors:\s+)?line (\d+): `)

func syntaxProblem(file string, err error) Problem {
	text := err.Error()
	if m := syntaxLine.FindStringSubmatch(text); m != nil {
		return Problem{file + ":" + m[1] + ":1", "not YAML: " + text[len(m[0]):], "check quotes, colons and indentation here and on the line before"}
	}
	return Problem{file + ":1:1", "not YAML: " + strings.TrimPrefix(text, "yaml: "), ""}
}
