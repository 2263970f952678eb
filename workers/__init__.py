"""The worker: claims turns, drives the agent loop, talks to the model provider, runs tools."""
