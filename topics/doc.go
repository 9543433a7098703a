// Package topics says where every record flows: each stream and table as data, under which key, with how many
// partitions and what retention; the one hash that decides the partition; provisioning and verification; typed
// producers and consumers; and the broker and registry that a single machine embeds.
package topics
