-- What a person asks of the transcript as a whole: a row of the inbox, tied to the housekeeping turn that carries it out.
-- It is folded into the newest message that stood then; `edit` is what came of it, `outcome` how, as canonical JSON.
alter table inbox add column edit bigint, add column outcome text;
alter table inbox drop constraint inbox_kind_check;
alter table inbox add constraint inbox_kind_check
  check (kind in ('input', 'steer', 'delivery', 'child', 'rewind', 'restore', 'compact'));

-- live (1,0), covered by a summary (0,1), rewound (0,0). The same rules as shared.request.edits.apply: a restore names the
-- rewind that it undoes; a summary is void while a later rewind that is in force reaches into it, and from the moment at
-- which an earlier one that did was undone, for it was made without what then came back.
create or replace view message_state as
select m.id, m.session,
       not rewound.is and not covered.is as active,
       not rewound.is and covered.is as compacted
from messages m
cross join lateral (
  select exists (
    select 1 from edits e where e.session = m.session and e.kind = 'rewind' and m.id between e.first and e.last
      and not exists (select 1 from edits r where r.session = e.session and r.kind = 'restore' and r.first = e.id)
  ) as is
) rewound
cross join lateral (
  select exists (
    select 1 from edits e where e.session = m.session and e.kind = 'summary' and m.id between e.first and e.last
      and not exists (
        select 1 from edits w where w.session = e.session and w.kind = 'rewind'
          and w.first <= e.last and w.last >= e.first
          and case when w.id > e.id
            then not exists (
              select 1 from edits r where r.session = w.session and r.kind = 'restore' and r.first = w.id)
            else (
              select min(r.id) from edits r where r.session = w.session and r.kind = 'restore' and r.first = w.id
            ) > e.id end
      )
  ) as is
) covered;
