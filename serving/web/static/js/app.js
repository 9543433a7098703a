// The state that the views share: the user and the feed.

export const app = {
  user: '',
  feed: 'home',
  feeds: new Set(['home', 'plain']), // names of feeds and of experiment arms
  known: false, // the API has answered for this user, so periodic updates run
  visit: 0, // incremented for each user and visit; answers to earlier ones are dropped
};

// current returns a function that reports whether the user and the visit are still the same.
export function current() {
  const mine = app.visit;
  return () => mine === app.visit;
}
