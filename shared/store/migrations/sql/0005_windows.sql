-- Wires and providers: what a provider's own words have said of a model's window (shared/windows.py).
-- `seen` is what the last such error said, `errors` how many in a row said the same, `learned` what is believed of it: a
-- smaller window than was believed needs two that agree. `source`: the words; `call`: whose, so that one that is written
-- twice counts once.
create table model_windows (
  provider text not null,
  model text not null,
  seen integer not null check (seen > 0),
  errors integer not null check (errors > 0),
  learned integer check (learned > 0),
  source text not null,
  call uuid not null,
  updated_at timestamptz not null,
  primary key (provider, model)
);
