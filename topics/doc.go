// Package topics defines where records flow. It contains:
//
//   - the catalogue: every topic and changelog as data, with its key, partition count, retention, writers and readers;
//   - the hash that maps a key to a partition;
//   - provisioning and verification of topics, and the ACLs of each role;
//   - producers, consumers, global tables, and Wait.
//
// Package topics/embedded has the broker and the schema registry for a single machine.
package topics
