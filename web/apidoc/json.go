package apidoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// JSON converts a YAML document to JSON and keeps the order of its members.
func JSON(document []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, err
	}
	if root.Kind != yaml.DocumentNode {
		return nil, errors.New("the document is empty")
	}
	var b bytes.Buffer
	if err := writeNode(&b, root.Content[0]); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func writeNode(b *bytes.Buffer, node *yaml.Node) error {
	switch node.Kind {
	case yaml.MappingNode:
		return writeMapping(b, node.Content)
	case yaml.SequenceNode:
		return writeSequence(b, node.Content)
	case yaml.ScalarNode:
		return writeScalar(b, node)
	}
	return fmt.Errorf("line %d: aliases are not understood", node.Line)
}

func writeMapping(b *bytes.Buffer, content []*yaml.Node) error {
	b.WriteByte('{')
	for i := 0; i < len(content); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(content[i].Value)
		if err != nil {
			return err
		}
		b.Write(name)
		b.WriteByte(':')
		if err := writeNode(b, content[i+1]); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func writeSequence(b *bytes.Buffer, content []*yaml.Node) error {
	b.WriteByte('[')
	for i, item := range content {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeNode(b, item); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	return nil
}

// indented is a value as JSON, laid out for reading.
func indented(node *yaml.Node) (string, error) {
	var plain, laidOut bytes.Buffer
	if err := writeNode(&plain, node); err != nil {
		return "", err
	}
	if err := json.Indent(&laidOut, plain.Bytes(), "", "  "); err != nil {
		return "", err
	}
	return laidOut.String(), nil
}

func writeScalar(b *bytes.Buffer, node *yaml.Node) error {
	var value any
	if err := node.Decode(&value); err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	b.Write(text)
	return nil
}
