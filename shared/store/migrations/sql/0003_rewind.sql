-- What a person asks of the transcript as a whole: a row of the inbox, tied to the housekeeping turn that carries it out.
-- It is folded into the newest message that stood then; `edit` is what came of it, `outcome` how, as canonical JSON.
alter table inbox add column edit bigint, add column outcome text;
alter table inbox drop constraint inbox_kind_check;
alter table inbox add constraint inbox_kind_check
  check (kind in ('input', 'steer', 'delivery', 'child', 'rewind', 'restore', 'compact'));

-- The same rules as shared.request.edits.apply; a test compares the two. A restore names the rewind that it undoes. A
-- summary is void while a later rewind is in force whose first message was there when it was made, for whoever wrote it had
-- read that; and from the moment at which an earlier one that reaches into it was undone, for it was made without that.
create view standing_rewinds as
select e.id, e.session, e.first, e.last from edits e
where e.kind = 'rewind'
  and not exists (select 1 from edits r where r.session = e.session and r.kind = 'restore' and r.first = e.id);

create view standing_summaries as
select e.id, e.session, e.first, e.last, e.kept from edits e
where e.kind = 'summary' and not exists (
  select 1 from edits w where w.session = e.session and w.kind = 'rewind'
    and case when w.id > e.id
      then w.first < e.id and not exists (
        select 1 from edits r where r.session = w.session and r.kind = 'restore' and r.first = w.id)
      else w.first <= e.last and w.last >= e.first and (
        select min(r.id) from edits r where r.session = w.session and r.kind = 'restore' and r.first = w.id
      ) > e.id end
);

-- live (1,0), covered by a summary (0,1), rewound (0,0). Of summaries inside one another only the outermost counts. What was
-- delegated is taken back with the call that delegated it, at any depth: a child's transcript begins with words of it.
create or replace view message_state as
select m.id, m.session,
       not rewound.is and not covered.is as active,
       not rewound.is and covered.is as compacted
from messages m
cross join lateral (
  select exists (
    select 1 from standing_rewinds w where w.session = m.session and m.id between w.first and w.last
  ) or exists (
    with recursive up as (
      select t.parent, t.parent_step from turns t where t.id = m.turn and t.parent is not null
      union all
      select p.parent, p.parent_step from up join turns p on p.id = up.parent where p.parent is not null
    )
    select 1 from up join messages d on d.turn = up.parent and d.step = up.parent_step and d.ordinal = 0
    join standing_rewinds w on w.session = d.session and d.id between w.first and w.last
  ) as is
) rewound
cross join lateral (
  select exists (
    select 1 from standing_summaries s where s.session = m.session and m.id between s.first and s.last
      and (m.id = any(s.kept)) is not true
      and not exists (
        select 1 from standing_summaries o
        where o.session = s.session and o.id > s.id and o.first <= s.first and s.last <= o.last
      )
  ) as is
) covered;
