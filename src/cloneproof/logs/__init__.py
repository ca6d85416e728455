"""Other people's logs: who is served how often and earns what, from files of any size, and what that answers.

reader      from files and tables to exact statistics of arms, in one pass
log         the log as it is used afterwards
originals   owners and originals, as far as findings of copies tell
fitting     priors fitted to what originals earned
worth       what the copies in the log earned their owners
attack      whether a policy pays for copies in the fitted market
backtest    what policies would have earned on the log; `replay` plays one again on its rewards
study       all of this together
"""

from cloneproof.logs.log import Log, LoggedArm
from cloneproof.logs.reader.reading import read_log

__all__ = ["Log", "LoggedArm", "read_log"]
