"""What providers have said of their models' windows. One row a model, locked alone and last."""

from __future__ import annotations

from shared.store.statements import named

WINDOW_LEARNED = named(
    "window_learned",
    "select learned, source from model_windows where provider = %(provider)s and model = %(model)s",
    "model_windows_pkey",
)
# A window that is larger than what was believed is believed at once, a smaller one when two errors in a row agree.
LEARN_WINDOW = named(
    "learn_window",
    """
insert into model_windows as w (provider, model, seen, errors, source, call, updated_at)
values (%(provider)s, %(model)s, %(seen)s, 1, %(source)s, %(call)s, clock_now())
on conflict (provider, model) do update set
  seen = excluded.seen, source = excluded.source, updated_at = excluded.updated_at,
  call = excluded.call, errors = case when w.seen = excluded.seen then w.errors + 1 else 1 end,
  learned = case when w.seen = excluded.seen or excluded.seen > w.learned then excluded.seen else w.learned end
where w.call <> excluded.call
returning learned, source
""",
)
