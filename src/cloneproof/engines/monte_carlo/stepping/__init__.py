"""Any mechanism made of rules, any reward family, round by round in compiled code."""
