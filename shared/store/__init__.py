"""The store: connections, migrations, named statements, and what is built of them."""
