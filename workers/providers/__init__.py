"""The wire to model providers: one streamed call, its reply or one error, its price. No state of a turn lives here."""
