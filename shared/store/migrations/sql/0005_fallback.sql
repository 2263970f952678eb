-- Where a turn's calls go while the session's own model is out; null is that model. It is the turn's alone: the next one
-- begins with the session's own again.
alter table turns add column provider text;
alter table turns add column model text;
alter table turns add constraint turns_link check ((provider is null) = (model is null));
-- Since when no model of its chain has taken its call; null where one has.
alter table turns add column out_since timestamptz;
-- To which provider and model, as `provider:model`, the last call of the conversation went: its cache is there, and what
-- it signed is believed there alone. Null where none was answered since this column is here.
alter table sessions add column spoke text;
-- Whether a call went out without tools and signed reasoning, as one to another model than the conversation's does.
alter table calls add column bare boolean not null default false;
-- A call that asks a model that was out whether it answers again has nothing of the conversation in it (purpose `probe`).

-- Auxiliary work: titles. Who wrote sessions.title: null whoever made the session (or nobody, where it is empty); else
-- `first` the first line that was said, for as long as no model was asked; `asked` a housekeeping turn was admitted that
-- will ask one, `kept` it has begun, so that none is asked twice: the first line stands until the answer is there;
-- `model`; `person`, which nothing overwrites.
alter table sessions add column titled text check (titled in ('first', 'asked', 'kept', 'model', 'person'));
create index sessions_untitled on sessions (created_at) where titled = 'first' and kind = 'chat';
alter table calls drop constraint calls_purpose_check;
alter table calls add constraint calls_purpose_check
  check (purpose in ('main', 'summary', 'final', 'ping', 'title', 'probe'));
create unique index calls_one_title on calls (session) where purpose = 'title';
