package cassandra_test

import (
	"fmt"
	"strings"

	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
)

// If the program must not create tables itself, an operator can review these statements. `smartfeed feed-store apply` runs
// them.
func ExampleStatements() {
	cfg, cluster := cassandra.DefaultConfig(), cassandra.DefaultCluster()
	cfg.Keyspace, cluster.Datacenter = "acme", "dublin"
	for _, statement := range cassandra.Statements(cfg, cluster) {
		first, _, _ := strings.Cut(statement, "\n")
		fmt.Println(first)
	}
	// Output:
	// CREATE KEYSPACE IF NOT EXISTS acme WITH replication = {'class': 'NetworkTopologyStrategy', 'dublin': 3}
	// CREATE TABLE IF NOT EXISTS acme.feeds (
	// CREATE TABLE IF NOT EXISTS acme.edges (
	// CREATE TABLE IF NOT EXISTS acme.cards (
	// CREATE TABLE IF NOT EXISTS acme.places (
	// CREATE TABLE IF NOT EXISTS acme.listings (
	// CREATE TABLE IF NOT EXISTS acme.deleted_users (
}
