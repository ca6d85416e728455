"""The live market: a clone-proof mechanism as a service. An optional extra: `pip install cloneproof[serve]`.

    protocol        what a market is, what may be asked of it, and how it refuses
    entries         the lines of the ledger
    ledger          the hash chain over them, and money in whole micro-units
    market_engine   one market: commands in, ledger entries out; deterministic
    house           all markets of one service, and snapshots of them
    commands        what can be asked of it: decide, reward, settle, and anything else
    grouping        what goes into one commit, and what of it is done together
    writer          group commit: gather, apply, one durable transaction, then the replies
    shared          the same with several processes on one storage, in turns
    storage/        where ledger, snapshots and keys are kept: memory, SQLite, PostgreSQL
    http/           the API, roles, limits, metrics
    client          a thin typed client, sync and async

Nothing in the rest of the package imports this one.
"""
