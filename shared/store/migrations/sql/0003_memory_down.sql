drop table memory_revisions, memories;
