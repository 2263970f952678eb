"""The provider wire against real sockets: a raw server that can say anything, also what no HTTP server would."""
