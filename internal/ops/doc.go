// Package ops has the functions behind the operator commands: topics, publish, deadletters, erase and refill; package
// generations has those of rebuild and replay. It communicates only with the brokers, so it can run on any host. The
// processes that read the topics do the work.
package ops
