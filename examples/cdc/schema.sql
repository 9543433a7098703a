-- Tables of an application whose users follow each other and create pins, and their publication for Debezium.
create table users (
  id text primary key,
  interests text[] not null default '{}',
  country text not null default '',
  updated_at timestamptz not null default now()
);
create table follows (
  follower text not null,
  kind text not null default 'user' check (kind in ('user', 'board', 'interest')),
  followee text not null,
  created_at timestamptz not null default now(),
  primary key (follower, kind, followee)
);
create table pins (
  id text primary key,
  author text not null,
  board text,
  interests text[] not null default '{}',
  title text not null default '',
  link text not null default '',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

-- The delete of a pin needs its author, and a change of another column needs a long title that did not change.
alter table pins replica identity full;
create publication smartfeed for table users, follows, pins;
