"""HTTP API: a plain ASGI application over one service."""
