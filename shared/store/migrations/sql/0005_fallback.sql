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
-- A call that asks a model that was out whether it answers again, with nothing of the conversation in it.
alter table calls drop constraint calls_purpose_check;
alter table calls add constraint calls_purpose_check check (purpose in ('main', 'summary', 'final', 'ping', 'probe'));
