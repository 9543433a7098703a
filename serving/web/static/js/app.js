// What the views share: whose feed is looked at, and which.

export const app = {
  user: '',
  feed: 'home',
  known: false, // the API has answered for this user: what changes by itself is asked for
  visit: 0, // numbers users and visits: an answer to an earlier one is dropped
};

// current returns a function that says whether what was asked when it was made still matters.
export function current() {
  const mine = app.visit;
  return () => mine === app.visit;
}
