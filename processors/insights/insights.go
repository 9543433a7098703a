// Package insights counts how a product grows, what the arms of experiments do, and which interests are popular at which
// hours. It stores the days on which each user acted, the sequence of the user's actions and visits, and the actions of each
// interest by hour.
//
//	owner   user
//	in      actions-enriched (key actor), served (key user), users-deleted (key user)
//	rows    common: of a user, the first day and the days of activity; of a user and day, verbs and visits with their times, in
//	        blocks; of an interest, the actions of the partition's users by weekday and hour
//	out     none; Reader answers with the part of one partition, and serving/insight merges the parts
//	timers  sequences expire
//
// All rows are common rows of the partition, so that a read scans them in one pass, user by user. Days and hours are in
// UTC, by event time. An action that arrives a day late changes the day on which it happened. A partition has KeepDays of
// activity per user, the first day of activity forever, and Config.SequenceRetention of sequences.
//
// A deleted user has no rows. The hours of interests keep their anonymous share.
//
// # Rows
//
// Deletion. What deletes each kind of row, by the first byte of its name:
//
//	'u'  days of a user    erasure; one row of KeepDays bits and the first day
//	's'  sequence of a day timer: Config.SequenceRetention after the day; erasure
//	'h'  hours             never: 168 counts for each interest, anonymous
//
// # Drops
//
// Dropped records are counted by reason: deleted_user; full_day is a visit, or an action that otherwise counts, that is not in
// the sequence of its day, which has maxBlocks blocks.
package insights

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
	"github.com/smartfeed/smartfeed/topics"
)

// Config holds the settings for insights. See DefaultConfig.
type Config struct {
	SequenceRetention time.Duration `yaml:"sequence_retention" default:"840h" range:"24h..9600h" help:"retention of sequences of actions, in whole days"`
	Timeout           time.Duration `yaml:"timeout" default:"10s" range:"10ms..5m" help:"timeout of an answer"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// SequenceDays returns SequenceRetention in whole days.
func (c Config) SequenceDays() int { return int(c.SequenceRetention / (24 * time.Hour)) }

// Validate reports every value that is out of range.
func (c Config) Validate() error { return settings.Validate(c) }

// Group returns the topology. cfg must be valid.
func Group(cfg Config, s *topics.Streams, deleted visibility.GrowingDeletedUsers) rows.Group {
	g := &group{days: day(cfg.SequenceDays()), deleted: deleted}
	return rows.Group{
		Name: topics.Insights,
		Inputs: []rows.Input{
			rows.Owned(s.ActionsEnriched, "action", "actor", func(a *schemas.EnrichedAction) schemas.UserID { return a.Actor }, g.action).Deferred(),
			rows.Owned(s.Served, "served", "user", func(v *schemas.Served) schemas.UserID { return v.User }, g.visit).Deferred(),
			rows.Keyed(s.UsersDeleted, g.deletion).Deferred(),
		},
		Timer: g.expire,
	}
}

type group struct {
	days    day // that sequences are kept
	deleted visibility.GrowingDeletedUsers
}

// The kinds of rows, by the first byte of their names.
const (
	rowUser     = 'u' // user → activity
	rowSequence = 's' // user, 0, day, block → entries: microseconds of the day (varint), verb or visit (text)…, in the order of arrival
	rowHours    = 'h' // interest → 7 × 24 varints: actions by weekday and hour
)

// action counts an action of the record's key.
func (g *group) action(tx *rows.Tx, a *schemas.EnrichedAction) error {
	if g.deleted.Has(a.Actor) {
		tx.Count("deleted_user")
		return nil
	}
	d := dayOf(a.Timestamp)
	addDay(tx.Common(), a.Actor, d)
	g.addToSequence(tx, a.Actor, a.Timestamp, string(a.Verb))
	addHour(tx.Common(), a, d)
	return nil
}

// addDay adds a day to a user's activity.
func addDay(common rows.Owner, user schemas.UserID, d day) {
	if a, _ := rows.Load[activity](common, rows.Name(rowUser, user)); !a.active(d) {
		a.add(d)
		rows.PutValue(common, rows.Name(rowUser, user), &a)
	}
}

// visit adds a visit with new items to the sequence of the record's key.
func (g *group) visit(tx *rows.Tx, v *schemas.Served) error {
	switch {
	case g.deleted.Has(v.User):
		tx.Count("deleted_user")
	case len(v.Items) > 0:
		g.addToSequence(tx, v.User, v.Time, visitEntry(v))
	}
	return nil
}

// A sequence of a day is a list of blocks, because each added entry rewrites a row. No person fills maxBlocks in a day: they
// are some six thousand actions.
const (
	maxBlock  = 512 // bytes
	maxBlocks = 128
	lastBlock = 1<<32 - 1 // number of the block that grows; the others count from 0
)

// sequences returns the prefix of a user's sequences.
func sequences(user schemas.UserID) []byte { return append(append([]byte{rowSequence}, user...), 0) }

// sequenceName returns the prefix of the blocks of a day.
func sequenceName(user schemas.UserID, d day) []byte {
	return binary.BigEndian.AppendUint32(sequences(user), uint32(d)^1<<31)
}

func blockName(user schemas.UserID, d day, block int) []byte {
	return binary.BigEndian.AppendUint32(sequenceName(user, d), uint32(block))
}

// sequenceOf returns the user and the day of a block's name.
func sequenceOf(name []byte) (user []byte, d day) {
	user, rest, _ := bytes.Cut(name[1:], []byte{0})
	return user, day(binary.BigEndian.Uint32(rest) ^ 1<<31)
}

// addToSequence adds an entry to its user's day, unless the day is full.
func (g *group) addToSequence(tx *rows.Tx, user schemas.UserID, at schemas.Micros, entry string) {
	d := dayOf(at)
	name, common := blockName(user, d, lastBlock), tx.Common()
	row := common.Load(name)
	if row == nil {
		row = []byte{format}
		g.schedule(common, user, d)
	}
	added := packed.AppendText(binary.AppendVarint(nil, int64(at-d.start())), entry)
	if len(row)+len(added) > maxBlock && len(row) > 1 {
		others := len(rows.LoadNames(common, sequenceName(user, d), 0)) - 1
		if others >= maxBlocks {
			tx.Count("full_day")
			return
		}
		common.Put(blockName(user, d, others), row)
		row = []byte{format}
	}
	common.Put(name, append(slices.Clip(row), added...))
}

// expiry returns when a user's day expires: at the time of the day that belongs to the user, so that not all expire at
// midnight.
func (g *group) expiry(user schemas.UserID, d day) time.Time {
	return (d + g.days).start().Time().Add(time.Duration(topics.Partition(string(user), 24*60*60)) * time.Second)
}

// schedule sets the timer of a user's oldest day before d is added. A user has one timer.
func (g *group) schedule(common rows.Owner, user schemas.UserID, d day) {
	oldest, found := oldestDay(common, user)
	if found && oldest <= d {
		return
	}
	if found {
		common.DropTimer(g.expiry(user, oldest), sequences(user))
	}
	common.SetTimer(g.expiry(user, d), sequences(user))
}

// oldestDay returns the first day of a user's sequences, and false if there are none.
func oldestDay(common rows.Owner, user schemas.UserID) (d day, found bool) {
	names := rows.LoadNames(common, sequences(user), 1)
	if len(names) == 0 {
		return 0, false
	}
	_, d = sequenceOf(names[0])
	return d, true
}

// expire deletes the expired days of a user, and sets the timer of the next one.
func (g *group) expire(tx *rows.Tx, common rows.Owner, name []byte, _ time.Time) error {
	user := schemas.UserID(name[1 : len(name)-1])
	for {
		d, found := oldestDay(common, user)
		switch at := g.expiry(user, d); {
		case !found:
			return nil
		case at.After(tx.Time()):
			common.SetTimer(at, name)
			return nil
		}
		rows.DeleteAll(common, sequenceName(user, d), 0)
	}
}

// addHour counts an action for the interests of its pin.
func addHour(common rows.Owner, a *schemas.EnrichedAction, d day) {
	hour := d.weekday()*24 + int((a.Timestamp-d.start())/3600e6)
	interests := slices.Clone(a.ObjectAttributes.Interests)
	slices.Sort(interests)
	for _, interest := range slices.Compact(interests) {
		name := rows.Name(rowHours, interest)
		row := common.Load(name)
		if row == nil {
			row = packed.Encode(&hours{})
		}
		counted, err := countHour(row, hour)
		if err != nil {
			common.Fail(rows.Unreadable(name, err))
		}
		common.Put(name, counted) // no effect after an error
	}
}

// deletion deletes the rows of a deleted user. It first notes the deletion, because this process may not have read it.
func (g *group) deletion(tx *rows.Tx, d *schemas.DeletedUser) error {
	if tx.Key() != string(d.User) {
		return schemas.Bad(fmt.Sprintf("deleted user: key %.64q: want %.64q", tx.Key(), d.User))
	}
	g.deleted.Note(d.User, d.Time)
	common := tx.Common()
	if oldest, found := oldestDay(common, d.User); found {
		common.DropTimer(g.expiry(d.User, oldest), sequences(d.User))
	}
	common.Delete(rows.Name(rowUser, d.User))
	rows.DeleteAll(common, sequences(d.User), 0)
	return nil
}
