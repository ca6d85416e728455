"""The live market: a clone-proof mechanism as a service. An optional extra: `pip install cloneproof[serve]`.

    market/     one market: its terms and dice, calls in and ledger entries out, snapshots and replay; deterministic
    storage/    where ledgers, snapshots and keys are kept: memory, SQLite, PostgreSQL
    messages    what goes over the wire; `calls` and `client` send it
    writer/     all markets of one service: gather calls, do them, one durable transaction, then the replies
    offline     reading what a service wrote: replays, past seasons for audits, backups
    http/       routes, roles, limits, metrics, and the page
    run         a service on a socket; `demo` simulates agents in one

A room imports only from the rooms above it in this list; an import-linter contract keeps it so.

Nothing in the rest of the package imports this one, but for the command line.
"""
