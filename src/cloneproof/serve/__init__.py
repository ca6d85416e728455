"""Live market: a clone-proof mechanism as a service. An optional extra: `pip install cloneproof[serve]`.

    market/     one market: its terms and dice, calls in and ledger entries out, snapshots and replay; deterministic
    storage/    where ledgers, snapshots and keys are kept: memory, SQLite, PostgreSQL
    messages    what goes over the wire; `calls` and `client` send it
    writer/     all markets of one service: gather calls, run them, commit one durable transaction, then reply
    offline     reading a service's data: replays, past seasons for audits, backups
    http/       routes, roles, limits, metrics, and the page
    run         a service on a socket; `demo` simulates agents in one

A room imports only from the rooms above it in this list; an import-linter contract keeps it so.

Only the command line imports this package.
"""
