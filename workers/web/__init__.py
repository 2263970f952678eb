"""What is fetched from other people's hosts: where may be gone, how, and what is made of it."""
