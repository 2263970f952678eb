"""The agent loop, driven in this process on real Postgres, Valkey and the rehearsal provider."""
