package schemas

import (
	"fmt"
	"strconv"
	"time"
)

// The methods below make object the fieldVisitor that reads an event from JSON.

func (o *object) text(name string, value *string, b textBounds) {
	o.field(name, b.rule, textInto(value))
}

func textInto(into *string) func([]byte) error {
	return func(raw []byte) (err error) {
		*into, err = parseText(raw)
		return err
	}
}

func (o *object) time(name string, value *Micros) {
	o.field(name, required, func(raw []byte) error {
		n, err := strconv.ParseInt(string(raw), 10, 64)
		*value = Micros(n)
		if raw[0] == '"' {
			var t time.Time
			err = t.UnmarshalJSON(raw)
			*value = MicrosOf(t)
		}
		if err != nil {
			return fmt.Errorf("want RFC 3339 text or an integer of microseconds, got %s", truncated(string(raw)))
		}
		return nil
	})
}

func (o *object) number(name string, value *float64) {
	o.field(name, required, func(raw []byte) (err error) {
		if *value, err = strconv.ParseFloat(string(raw), 64); err != nil {
			return fmt.Errorf("want a number, got %s", truncated(string(raw)))
		}
		return nil
	})
}

func (o *object) ids(name string, list idList, b idBounds) {
	o.field(name, b.rule, func(raw []byte) error {
		items, err := parseArray(raw)
		if err != nil {
			return err
		}
		ids := make([]string, len(items))
		for i, item := range items {
			if ids[i], err = parseText(item); err != nil {
				return fmt.Errorf("entry %d: %w", i, err)
			}
		}
		list.set(ids)
		return nil
	})
}

func (o *object) attributes(name string, value *map[string]string) {
	o.field(name, optional, func(raw []byte) error {
		inner, err := parseObject(raw, "", nil)
		if err != nil {
			return err
		}
		*value = make(map[string]string, len(inner.members))
		for _, m := range inner.members {
			if (*value)[m.name], err = parseText(m.value); err != nil {
				return fmt.Errorf("%s: %w", quote(m.name), err)
			}
		}
		return nil
	})
}

func (o *object) embedding(name string, value *[]float32) {
	o.field(name, nullable, func(raw []byte) error {
		items, err := parseArray(raw)
		if err != nil {
			return err
		}
		*value = make([]float32, len(items))
		for i, item := range items {
			x, err := strconv.ParseFloat(string(item), 32)
			if err != nil {
				return fmt.Errorf("entry %d: want a number of 32 bits, got %s", i, truncated(string(item)))
			}
			(*value)[i] = float32(x)
		}
		return nil
	})
}

func (o *object) candidates(name string, list *[]Candidate) {
	o.field(name, required, func(raw []byte) error {
		items, err := parseArray(raw)
		*list = make([]Candidate, len(items))
		for i, item := range items {
			o.candidate(fmt.Sprintf("%s[%d]", name, i), item, &(*list)[i])
		}
		return err
	})
}

func (o *object) candidate(path string, raw []byte, c *Candidate) {
	inner, err := parseObject(raw, path+".", o.p)
	if err != nil {
		o.p.note(path, err)
		return
	}
	c.visit(inner)
	inner.close()
}
