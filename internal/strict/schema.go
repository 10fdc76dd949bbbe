package strict

import "strconv"

// Schema gives the JSON Schema of a mapping with the table's keys, the stored
// values as defaults.
func (t Table) Schema() map[string]any {
	properties := map[string]any{}
	for _, head := range t.heads() {
		if k := t.Find(head); k != nil {
			properties[head] = k.schema()
		} else {
			properties[head] = t.Under(head).Schema()
		}
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func (k *Key) schema() map[string]any {
	s := k.Value.shaped()
	s["description"] = k.Doc
	if k.Value.Text != nil {
		if def := k.Value.typed(); def != nil {
			s["default"] = def
		}
	}
	return s
}

// shaped is the schema of the whole value: one item, or a list of them.
func (v Value) shaped() map[string]any {
	one := map[string]any{}
	for name, rule := range v.Schema {
		one[name] = rule
	}
	list := map[string]any{"type": "array", "items": v.item()}
	switch v.Shape {
	case List:
		return map[string]any{"anyOf": []any{one, list}}
	case Words:
		return list
	case Pairs:
		return map[string]any{"anyOf": []any{list, map[string]any{"type": "object"}}}
	}
	return one
}

// item is the schema of one item of a list.
func (v Value) item() map[string]any {
	if len(v.Parts) == 0 {
		return v.Schema
	}
	properties := map[string]any{}
	for _, part := range v.Parts {
		properties[part] = map[string]any{"type": "string"}
	}
	return map[string]any{"anyOf": []any{v.Schema, map[string]any{
		"type": "object", "additionalProperties": false, "properties": properties, "required": v.Parts,
	}}}
}

// typed is the stored value as JSON has it, nil where it is empty.
func (v Value) typed() any {
	texts := v.Text()
	if v.Shape != Scalar {
		if len(texts) == 0 {
			return nil
		}
		return texts
	}
	if texts[0] == "" {
		return nil
	}
	return v.JSON()
}

// JSON gives the stored value with the type that JSON and YAML have for it:
// a list of strings, a bool, a number or a string.
func (v Value) JSON() any {
	texts := v.Text()
	if v.Shape != Scalar {
		return texts
	}
	switch v.Schema["type"] {
	case "boolean":
		return texts[0] == "true"
	case "integer":
		if n, err := strconv.Atoi(texts[0]); err == nil {
			return n
		}
	case "number":
		if f, err := strconv.ParseFloat(texts[0], 64); err == nil {
			return f
		}
	}
	return texts[0]
}
