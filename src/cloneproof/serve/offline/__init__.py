"""Reading what a service wrote, from outside: seasons and ledgers."""
