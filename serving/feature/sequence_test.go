package feature

import (
	"encoding/json"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestSequence_JSON(t *testing.T) {
	text := must.Get(json.Marshal(Sequence{Times: []int64{3, 2, 1}, Columns: map[string]Column{
		"verb":                       {Texts: []string{"save", "", "x"}},
		"objectAttributes.embedding": {Vectors: [][]float32{nil, {0.5, -1}, {3, 4}}},
		"actorAttributes.embedding":  {Vectors: [][]float32{{-127}, nil, nil}, Scales: []float32{0.25, 0, 0}},
	}}))(t)
	const want = `{"actorAttributes.embedding":[[-127],null,null],"objectAttributes.embedding":[null,[0.5,-1],[3,4]],` +
		`"scale.actorAttributes.embedding":[0.25,0,0],"time":[3,2,1],"verb":["save","","x"]}`
	expect.Equal(t, string(text), want, "sequence %s", text)
}
