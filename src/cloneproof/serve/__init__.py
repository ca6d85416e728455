"""The live market: a clone-proof mechanism as a service. An optional extra: `pip install cloneproof[serve]`.

    ledger/     the terms of a market, the lines of its ledger, the hash chain over them, money in whole micro-units
    storage/    where ledgers, snapshots and keys are kept: memory, SQLite, PostgreSQL
    market/     one market: calls in, ledger entries out; deterministic; snapshots and replay of it
    api/        the messages, the calls that send them, and a thin typed client, sync and async
    commit/     all markets of one service, and group commit: gather, apply, one durable transaction, then the replies
    offline/    reading what a service wrote: replays, and past seasons for audits
    what_if/    "what would a copy earn?", in a process of its own
    http/       routes, roles, limits, metrics, and the page
    run         a service on a socket; `local` starts one in another process, `demo` simulates agents in one

A room imports only from the rooms above it in this list; an import-linter contract keeps it so.

Nothing in the rest of the package imports this one, but for the command line.
"""
