// Package ops implements the operator commands publish, dead-letters, erase and feed-store refill. Package
// generations implements rebuild and replay. Both communicate only with the brokers, and can run on any host. The
// processes that read the topics apply the changes.
package ops
