package feature

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// UnmarshalJSON reads the output of json.Marshal. An empty list, which was a Last or a Top, becomes a Last.
func (a *Answer) UnmarshalJSON(text []byte) error {
	type plain Answer // without this method
	var raw struct {
		plain
		Values map[string]map[string]json.RawMessage `json:"values"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	*a = Answer(raw.plain)
	a.Values = make(map[string]map[string]Value, len(raw.Values))
	for entity, features := range raw.Values {
		a.Values[entity] = make(map[string]Value, len(features))
		for name, value := range features {
			v, err := parseValue(value)
			if err != nil {
				return fmt.Errorf("%s of %s: %w", name, entity, err)
			}
			a.Values[entity][name] = v
		}
	}
	return nil
}

// parseValue derives the type of a value from its form.
func parseValue(text json.RawMessage) (Value, error) {
	switch {
	case bytes.Equal(text, []byte("null")):
		return nil, nil
	case bytes.Equal(text, []byte("[]")):
		return Last{}, nil
	case text[0] == '{':
		if groups, err := parseAs[Groups](text); err == nil {
			return groups, nil
		}
		return parseAs[Sequence](text)
	case text[0] != '[':
		return parseAs[Number](text)
	}
	var first []struct {
		Object *string `json:"object"`
	}
	if json.Unmarshal(text, &first) != nil {
		return parseAs[Vector](text)
	}
	if first[0].Object != nil {
		return parseAs[Last](text)
	}
	return parseAs[Top](text)
}

func parseAs[T Value](text []byte) (Value, error) {
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	return v, nil
}
