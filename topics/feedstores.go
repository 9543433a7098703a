package topics

// MaterializeGroup is the group that fills a feed store, each store having one of its own. The name of the first store is "",
// and its group Materialize.
func MaterializeGroup(store string) string {
	if store == "" {
		return Materialize
	}
	return Materialize + "-" + store
}
