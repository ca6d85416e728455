"""What people see of a command: tables that fit a terminal, progress, audits and award tables."""
