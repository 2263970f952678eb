"""`./dev bench`: each figure beside a no-op or a bare loop of the same run; a missed mark is told and fails nothing."""
