-- The fence. The session's integer rises whenever a right to write begins or ends, and stands in every write.
-- The row lock is FOR NO KEY UPDATE: a plain SELECT and FOR KEY SHARE let a late row land, FOR SHARE starves the claim.
create function check_fence() returns trigger language plpgsql as $$
declare held bigint;
begin
  select fence into held from sessions where id = new.session for no key update;
  if held is distinct from new.fence then
    raise exception 'the fence of session % is %, not %', new.session, held, new.fence using errcode = 'NS001';
  end if;
  return new;
end $$;

create trigger messages_fence before insert on messages for each row execute function check_fence();
create trigger edits_fence before insert on edits for each row execute function check_fence();
create trigger calls_fence before insert or update on calls for each row execute function check_fence();
create trigger tool_runs_fence before insert or update on tool_runs for each row execute function check_fence();

-- A message or an edit is never changed and never deleted; erasing a person's data is a separate, audited path.
create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only: % is refused', tg_table_name, tg_op using errcode = 'NS002';
end $$;

create trigger messages_append_only before update or delete on messages for each row execute function refuse_change();
create trigger messages_no_truncate before truncate on messages for each statement execute function refuse_change();
create trigger edits_append_only before update or delete on edits for each row execute function refuse_change();
create trigger edits_no_truncate before truncate on edits for each statement execute function refuse_change();
create trigger audit_append_only before update or delete on audit for each row execute function refuse_change();
create trigger audit_no_truncate before truncate on audit for each statement execute function refuse_change();

-- Which change of a turn is legal (shared/transitions.py; a test compares the two).
create function check_turn() returns trigger language plpgsql as $$
declare held bigint;
begin
  if new.status <> old.status and (old.status, new.status) not in (
    ('queued', 'running'),
    ('queued', 'cancelled'),
    ('queued', 'failed'),
    ('running', 'done'),
    ('running', 'failed'),
    ('running', 'cancelled'),
    ('running', 'parked'),
    ('running', 'queued'),
    ('parked', 'queued'),
    ('parked', 'cancelled'),
    ('parked', 'failed')
  ) then
    raise exception 'a turn does not go from % to %', old.status, new.status using errcode = 'NS003';
  end if;
  if old.status = 'running' or new.status = 'running' then
    select fence into held from sessions where id = new.session for no key update;
    if held is distinct from new.fence then
      raise exception 'the fence of session % is %, not %', new.session, held, new.fence using errcode = 'NS001';
    end if;
  end if;
  return new;
end $$;

-- A cancel is asked for by anyone who may, without the fence; everything else of a running turn is its holder's.
create trigger turns_law before update on turns for each row
when (
  (old.status, old.holder, old.fence, old.attempts, old.step, old.steps, old.refunds, old.spent_usd, old.reserved_usd,
   old.answer, old.parked_on, old.deadline_at)
  is distinct from
  (new.status, new.holder, new.fence, new.attempts, new.step, new.steps, new.refunds, new.spent_usd, new.reserved_usd,
   new.answer, new.parked_on, new.deadline_at)
)
execute function check_turn();
