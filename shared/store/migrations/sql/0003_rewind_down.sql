-- What was only asked for is no part of a transcript; what was carried out stands in the edits.
delete from inbox where kind in ('rewind', 'restore', 'compact');
alter table inbox drop constraint inbox_kind_check;
alter table inbox add constraint inbox_kind_check check (kind in ('input', 'steer', 'delivery', 'child'));
alter table inbox drop column edit, drop column outcome;
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
        select 1 from edits w where w.session = e.session and w.kind = 'rewind' and w.id > e.id and w.first <= e.last
          and not exists (select 1 from edits r where r.session = w.session and r.kind = 'restore' and r.first = w.id)
      )
  ) as is
) covered;
drop view standing_summaries, standing_rewinds;
