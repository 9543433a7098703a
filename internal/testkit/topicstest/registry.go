package topicstest

import (
	"context"
	"encoding/binary"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// failingRegistry registers schemas, and then returns none.
type failingRegistry struct{ *schemas.Registry }

func (failingRegistry) SchemaByID(context.Context, int) (string, error) {
	return "", schemas.ErrRegistryUnavailable
}

// WithoutRegistry returns streams whose registry became unavailable after their schemas were registered.
func (c *Cluster) WithoutRegistry() *topics.Streams {
	c.t.Helper()
	known := must.Get(schemas.NewRegistry(c.Registry))(c.t)
	return must.Get(topics.Open(c.t.Context(), failingRegistry{known}))(c.t)
}

// ByOtherWriter gives an encoded record the schema of a writer that its readers do not know yet.
func ByOtherWriter(value []byte) []byte {
	binary.BigEndian.PutUint32(value[1:], 999)
	return value
}
