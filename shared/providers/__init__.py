"""Model providers as data: what each is, and which one a process speaks to. No network and no SDK here."""
