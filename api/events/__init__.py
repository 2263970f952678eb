"""A turn's events on their way to those who watch.

`timeline` decides (pure), `log` keeps what may be sent again, `feed` is one watched turn, `source` reads Redis for all
of them, `truth` reads Postgres, `hub` holds them, `response` is the HTTP answer. docs/events.md is the client's side.
"""
