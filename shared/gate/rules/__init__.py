"""What the gate knows of programs, a file a subject: each rule says what is met, and how strict that is."""
