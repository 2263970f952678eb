-- A tool's result of which the transcript holds a preview: whole, under the run that gave it. `characters` is its length
-- (null in rows of the release before, which then is counted), by which a text of one byte each is known: of such a one,
-- and because the value is not compressed, a page is read without the rest.
alter table artifacts add column step integer, add column ordinal integer, add column characters integer;
alter table artifacts alter column body set storage external;
create unique index artifacts_of_run on artifacts (turn, step, ordinal) where step is not null;
